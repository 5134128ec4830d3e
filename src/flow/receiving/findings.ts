// The results of a mail's checks, as stored with the message.

import type { AuthResult } from '../../base/auth-result.ts'
import type { ArcVerdict } from '../../mailauth/arc/validate-arc.ts'
import type { DkimVerdict } from '../../mailauth/dkim/verify-dkim.ts'
import type { SpfVerdict } from '../../mailauth/spf/check-spf.ts'
import type { AuthMethod, MailFindings } from '../../store/mailbox/messages.ts'
import type { Verdicts } from './evaluation.ts'

/** Returns the verdicts in short, and the result of each method as in RFC 8601. `ip` is the client's address. */
export function toFindings(
  verdicts: Verdicts,
  { ip, helo, from }: { ip: string; helo: string; from: string },
): MailFindings {
  const { spf, dkim, dmarc, arc, vouchedBy, reverseDns } = verdicts
  const methods: AuthMethod[] = [
    spfMethod(spf, { helo, from }),
    ...(dkim.length > 0 ? dkim.map(dkimMethod) : [unsigned]),
    {
      method: 'dmarc',
      result: dmarc.result,
      reason: dmarc.reason,
      properties: [...property('header', 'from', dmarc.domain), ...property('policy', 'dmarc', dmarc.policy)],
    },
    ...arcMethods(arc, { ip, vouchedBy }),
    {
      method: 'iprev',
      result: reverseDns.result,
      reason: reverseDns.reason,
      properties: [['policy', 'iprev', ip]],
    },
  ]
  return {
    authentication: { spf: spf.result, dkim: dkimResult(verdicts), dmarc: dmarc.result },
    methods: methods.map(bounded),
  }
}

/**
 * The maximum lengths of `mailauth/result-fields`. A stranger's signature contains these texts, and each inbox stores a
 * copy of them.
 */
const max = { value: 320, words: 200 }
const controls = /\p{Cc}/u
const controlsRuns = /\p{Cc}+/gu

function bounded({ reason, mechanism, properties, ...method }: AuthMethod): AuthMethod {
  return {
    ...method,
    ...(reason !== undefined && { reason: inWords(reason) }),
    ...(mechanism !== undefined && { mechanism: inWords(mechanism) }),
    properties: properties.filter(([, , value]) => value.length <= max.value && !controls.test(value)),
  }
}

/** Returns a bounded text without control characters. PostgreSQL takes no NUL in JSON. */
function inWords(text: string): string {
  return text.slice(0, max.words).toWellFormed().replace(controlsRuns, ' ')
}

const unsigned: AuthMethod = { method: 'dkim', result: 'none', reason: 'not signed', properties: [] }

/** From best to worst: the best of several signatures counts. */
const bestFirst: AuthResult[] = ['pass', 'temperror', 'policy', 'fail', 'neutral', 'permerror']

/** One valid signature is `pass`, whoever signed. If all fail, only those of the author's domain count, if there are any. */
function dkimResult({ dkim, dmarc: { domain: author } }: Verdicts): AuthResult {
  const isPass = dkim.some(({ result }) => result === 'pass')
  const own = dkim.filter(({ domain }) => domain !== null && domain === author)
  const counted = isPass || own.length === 0 ? dkim : own
  return bestFirst.find((one) => counted.some(({ result }) => result === one)) ?? 'none'
}

function spfMethod(
  { result, reason, identity, mechanism }: SpfVerdict,
  { helo, from }: { helo: string; from: string },
): AuthMethod {
  const named: [string, string, string] =
    identity === 'helo' ? ['smtp', 'helo', helo] : ['smtp', 'mailfrom', from]
  return { method: 'spf', result, reason, ...(mechanism && { mechanism }), properties: [named] }
}

function dkimMethod({ result, reason, domain, selector, identity, algorithm }: DkimVerdict): AuthMethod {
  return {
    method: 'dkim',
    result,
    reason,
    properties: [
      ...property('header', 'd', domain),
      ...property('header', 's', selector),
      ...property('header', 'i', identity),
      ...property('header', 'a', algorithm),
    ],
  }
}

/** Returns nothing for mail without ARC seals, which is nearly all mail. */
function arcMethods(
  { result, reason }: ArcVerdict,
  { ip, vouchedBy }: { ip: string; vouchedBy: string | null },
): AuthMethod[] {
  if (result === 'none') return []
  // RFC 8617 5.2.1: a chain that cannot be validated now has failed.
  const reported = result === 'temperror' ? 'fail' : result
  // Explains why the mail was accepted although its author's domain wants it refused.
  const why = vouchedBy === null ? reason : `${reason}, and ${vouchedBy} is trusted, which vouches for it`
  return [{ method: 'arc', result: reported, reason: why, properties: [['smtp', 'remote-ip', ip]] }]
}

function property(type: string, name: string, value: string | null): [string, string, string][] {
  return value === null ? [] : [[type, name, value]]
}
