// The doctor's checks of the inboxes that send daily reports: whether they exist, on the nodes that need them.
import type { Role } from '../../config/settings.ts'
import type { Foundation } from '../../foundation.ts'
import { findInboxesByAddress } from '../../store/mailbox/inboxes.ts'
import { type Check, ok, skipped, warning } from './checks.ts'

/** One check if DMARC reports are configured, otherwise none. */
export async function checkDmarcReports(foundation: Foundation): Promise<Check[]> {
  const { dmarcReports: address } = foundation.settings
  const named = { name: 'DMARC reports', setting: 'POSTHORN_DMARC_REPORTS', address }
  return await checkInbox(foundation, { ...named, role: 'mx', counts: 'mail' })
}

/** One check if reports about TLS are configured, otherwise none. */
export async function checkTlsReports(foundation: Foundation): Promise<Check[]> {
  const { tlsReports: address, delivery } = foundation.settings
  const name = 'TLS reports'
  if (address !== null && delivery !== 'direct')
    return [skipped(name, `POSTHORN_DELIVERY=${delivery}: only direct delivery has sessions to report`)]
  const named = { name, setting: 'POSTHORN_TLS_REPORTS', address }
  return await checkInbox(foundation, { ...named, role: 'delivery', counts: 'sessions' })
}

interface ReportInbox {
  name: string
  setting: string
  address: string | null
  /** The role that counts, and the things that it counts. */
  role: Role
  counts: string
}

async function checkInbox(
  { db, clock, settings: { roles } }: Foundation,
  { name, setting, address, role, counts }: ReportInbox,
): Promise<Check[]> {
  if (address === null) return []
  if (!roles.includes(role) && !roles.includes('jobs'))
    return [
      skipped(
        name,
        `this node has neither the role ${role}, which counts ${counts}, nor jobs, which sends reports`,
      ),
    ]
  const [inbox] = await findInboxesByAddress(db, [address], clock.now())
  if (inbox) return [ok(name, `sent daily from ${address}`)]
  const mend = `open the inbox (POST /v1/inboxes), or correct ${setting}`
  return [warning(name, `there is no inbox ${address}: reports wait for a day, then they are dropped`, mend)]
}
