// The doctor's check of the inbox that sends DMARC reports: whether it exists, on the nodes that need it.
import type { Foundation } from '../../foundation.ts'
import { findInboxesByAddress } from '../../store/mailbox/inboxes.ts'
import { type Check, ok, skipped, warning } from './checks.ts'

const name = 'DMARC reports'

/** One check if reports are configured, otherwise none. */
export async function checkDmarcReports({ db, clock, settings }: Foundation): Promise<Check[]> {
  const { dmarcReports: address, roles } = settings
  if (address === null) return []
  if (!roles.includes('mx') && !roles.includes('jobs'))
    return [
      skipped(name, 'this node has neither the role mx, which counts mail, nor jobs, which sends reports'),
    ]
  const [inbox] = await findInboxesByAddress(db, [address], clock.now())
  if (inbox) return [ok(name, `sent daily from ${address}`)]
  const mend = 'open the inbox (POST /v1/inboxes), or correct POSTHORN_DMARC_REPORTS'
  return [warning(name, `there is no inbox ${address}: reports wait for a day, then they are dropped`, mend)]
}
