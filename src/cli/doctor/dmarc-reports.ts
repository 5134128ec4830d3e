// What the doctor makes of the inbox that DMARC reports are sent from: whether it is there, on the nodes that need it.
import type { Foundation } from '../../foundation.ts'
import { findInboxesByAddress } from '../../store/mailbox/inboxes.ts'
import { type Check, ok, skipped, warning } from './checks.ts'

const name = 'DMARC reports'

/** A check where reports are to be sent; none where they are not. */
export async function checkDmarcReports({ db, clock, settings }: Foundation): Promise<Check[]> {
  const { dmarcReports: address, roles } = settings
  if (address === null) return []
  if (!roles.includes('mx') && !roles.includes('jobs'))
    return [skipped(name, 'this node has neither the role mx, which counts, nor jobs, which sends')]
  const [inbox] = await findInboxesByAddress(db, [address], clock.now())
  if (inbox) return [ok(name, `sent daily from ${address}`)]
  const mend = 'open it as any other (POST /v1/inboxes), or mend POSTHORN_DMARC_REPORTS'
  return [warning(name, `there is no inbox ${address}: reports wait for a day and are lost`, mend)]
}
