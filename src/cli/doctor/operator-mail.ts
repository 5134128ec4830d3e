// The doctor's check of mail for postmaster@, abuse@ and the like, which the operator must read.
import { counted } from '../../base/counted.ts'
import type { Settings } from '../../config/settings.ts'
import { isTlsReports } from '../../mail/reserved-names.ts'
import type { Db } from '../../postgres/db.ts'
import { countUnreadKept } from '../../store/mailbox/kept-mail.ts'
import { type Check, ok, skipped, warning } from './checks.ts'

/** RFC 5321 4.5.1: postmaster's mail must be read. RFC 2142 4: so must that of abuse. */
export async function checkOperatorMail(db: Db): Promise<Check> {
  const name = 'operator mail'
  const counts = new Map<string, number>()
  for (const { address, count } of await countUnreadKept(db)) {
    const localPart = address.slice(0, address.lastIndexOf('@')).toLowerCase().replace(/\+.*/, '')
    // TLS reports come daily, and their senders expect no answer.
    if (isTlsReports(localPart)) continue
    const reader = readerOf(localPart)
    counts.set(reader, (counts.get(reader) ?? 0) + count)
  }
  if (counts.size === 0) return ok(name, 'no unread mail')
  return warning(name, describeUnread([...counts]), 'read it with posthorn mail list')
}

/** The address that receives organizations' requests for access. */
export function describeRequestMail({ operatorMail }: Settings): Check {
  const name = 'requests for access'
  if (operatorMail) return ok(name, `mailed to ${operatorMail}`)
  return skipped(name, 'shown at the desk, but not mailed: POSTHORN_OPERATOR_MAIL is not set')
}

/** Every return path has its own name. Their mail that the service could not interpret is counted together. */
function readerOf(localPart: string): string {
  return /^bounces?-/.test(localPart) ? 'return paths' : `${localPart}@`
}

/** Formats `3 mails to abuse@ and 1 to postmaster@ are unread`. */
function describeUnread(counts: [name: string, count: number][]): string {
  const [first, ...others] = counts.toSorted(([, a], [, b]) => b - a)
  const [name, count] = first!
  const parts = [
    `${counted(count, 'mail')} to ${name}`,
    ...others.map(([other, number]) => `${number} to ${other}`),
  ]
  const isOne = counts.length === 1 && count === 1
  return `${parts.join(' and ')} ${isOne ? 'is' : 'are'} unread`
}
