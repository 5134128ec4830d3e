// Jobs: the deliveries of one message that share a next hop, claimed together and loaded for sending.
import type { Clock } from '../../base/clock.ts'
import type { SubmissionId } from '../../base/ids.ts'
import type { RecentlyUsed } from '../../base/recently-used.ts'
import type { Db, DbFault } from '../../postgres/db.ts'
import { readUntorn } from '../../postgres/read-untorn.ts'
import {
  type ClaimedDelivery,
  type ClaimRequest,
  claimDeliveries,
  type DeliveryResult,
  type OutboundContent,
  readContents,
} from '../../store/sending/deliveries.ts'
import { endDeliveries } from '../../store/sending/delivery-ends.ts'

export interface JobDeps {
  db: Db
  clock: Clock
  /** Contents accepted on this node and not claimed yet, by submission id. Any other content is read from the database. */
  sendCache?: RecentlyUsed<OutboundContent> | undefined
}

/** One message for recipients of one route, claimed under one epoch. */
export interface DeliveryJob {
  route: string
  epoch: number
  content: OutboundContent
  deliveries: ClaimedDelivery[]
}

const suppression = {
  failureCode: 'suppressed',
  eventType: 'suppressed',
  classification: null,
} as const

interface Lease {
  route: string
  epoch: number
}

interface ClaimedJobs {
  jobs: DeliveryJob[]
  /** Claimed deliveries of each message whose content needs a torn page of the database. */
  torn: { fault: DbFault; deliveries: ClaimedDelivery[] }[]
}

/**
 * Claims up to `wanted` due deliveries of the route and groups them by message. Ends deliveries that were suppressed after
 * acceptance. If a step after the claim fails, releases every claim without an attempt and throws.
 */
export async function claimJobs(
  deps: JobDeps,
  claim: ClaimRequest,
  record: (results: DeliveryResult[]) => void,
): Promise<ClaimedJobs> {
  const { db, clock } = deps
  const lease = { route: claim.route, epoch: claim.epoch }
  const found = await claimDeliveries(db.writer, claim, clock.now())
  const { suppressed = [], wanted = [] } = Object.groupBy(found, ({ isSuppressed }) =>
    isSuppressed ? 'suppressed' : 'wanted',
  )
  const bySubmission = Map.groupBy(wanted, ({ submissionId }) => submissionId)
  try {
    const { contents, torn } = await findContents(deps, [...bySubmission.keys()])
    await endDeliveries(db.writer, suppressed, { ...suppression, epoch: lease.epoch }, clock.now())
    const jobs = [...bySubmission].flatMap(([id, deliveries]) => {
      const content = contents.get(id)
      deliveries.sort((a, b) => a.position - b.position)
      return content ? [{ ...lease, content, deliveries }] : []
    })
    return { jobs, torn: [...torn].map(([id, fault]) => ({ fault, deliveries: bySubmission.get(id)! })) }
  } catch (error) {
    record(found.map((delivery) => giveBack(lease, delivery)))
    throw error
  }
}

/** Takes each content from memory at its first claim, which most often is the only one. */
async function findContents(
  { db, sendCache }: JobDeps,
  ids: SubmissionId[],
): Promise<{ contents: Map<SubmissionId, OutboundContent>; torn: Map<SubmissionId, DbFault> }> {
  const cached = ids.map((id) => sendCache?.use(id)).filter((content) => content !== undefined)
  const contents = new Map(cached.map((content) => [content.submissionId, content]))
  for (const id of contents.keys()) sendCache?.delete(id)
  const lacking = ids.filter((id) => !contents.has(id))
  const { rows, torn } = await readUntorn(lacking, async (some) =>
    some.length > 0 ? await readContents(db, some) : [],
  )
  for (const content of rows) contents.set(content.submissionId, content)
  return { contents, torn }
}

/** Returns results that release the job's claims without an attempt. */
export function untried(job: DeliveryJob): DeliveryResult[] {
  return job.deliveries.map((delivery) => giveBack(job, delivery))
}

/** Returns a result that releases one claim without an attempt. */
export function giveBack(lease: Lease, delivery: ClaimedDelivery): DeliveryResult {
  const end = { status: null, dueAt: null, response: null, failureCode: null, outcome: null }
  return { ...claimKeyOf(lease, delivery), ...end }
}

export function claimKeyOf({ route, epoch }: Lease, { submissionId, position }: ClaimedDelivery) {
  return { submissionId, position, route, epoch }
}
