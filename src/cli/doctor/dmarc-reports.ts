// What the doctor makes of the inbox that DMARC reports are sent from: whether it is there, on the nodes that need it.
import type { Settings } from '../../config/settings.ts'
import type { Foundation } from '../../foundation.ts'
import { findInboxesByAddress } from '../../store/inboxes.ts'
import { type Check, ok, skipped, warning } from './checks.ts'

const name = 'DMARC reports'

/** A check where reports are to be sent; none where they are not. */
export async function checkDmarcReports({ db, clock, settings }: Foundation): Promise<Check[]> {
  const { dmarcReports, roles } = settings
  if (dmarcReports === null) return []
  const [inbox] = await findInboxesByAddress(db, [dmarcReports], clock.now())
  return [evaluateReporter({ address: dmarcReports, roles, isThere: inbox !== undefined })]
}

interface Reporter {
  address: string
  roles: Settings['roles']
  isThere: boolean
}

function evaluateReporter({ address, roles, isThere }: Reporter): Check {
  if (!roles.includes('mx') && !roles.includes('jobs'))
    return skipped(name, 'this node has neither the role mx, which counts, nor jobs, which sends')
  if (isThere) return ok(name, `sent daily from ${address}`)
  return warning(
    name,
    `there is no inbox ${address}: reports wait for a day and are lost`,
    'open it as any other (POST /v1/inboxes), or mend POSTHORN_DMARC_REPORTS',
  )
}
