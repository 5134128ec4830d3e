// Deliveries: claiming those that are due, recording results, ending them.
import { type InboxId, newUuid, type OrganizationId, type SubmissionId } from '../../base/ids.ts'
import { Arguments } from '../../postgres/arguments.ts'
import { column, columnOf, pick } from '../../postgres/columns.ts'
import type { Queryable, Tx, Writer } from '../../postgres/db.ts'
import type { EventFact } from '../events/events.ts'
import type { AttachmentEntry, MailboxValue, MessageRow } from '../mailbox/messages.ts'
import type { DeliveryStatus } from '../status.ts'
import { dueOf, type RoundRobin, type RoundStates } from './round-robin.ts'
import { isPausedWith } from './routes.ts'
import { skipScan } from './skip-scan.ts'

export interface ClaimedDelivery {
  submissionId: SubmissionId
  position: number
  organizationId: OrganizationId
  email: string
  attempts: number
  /** How many attempts ended because of a lasting fault of ours, before the message was written. */
  ownFaults: number
  queuedAt: Date
  expiresAt: Date
  /** Whether its address was suppressed after the send was accepted. */
  isSuppressed: boolean
}

/** The content of a submission's message: from it the message is composed, unless it is sent as it is. */
export interface OutboundContent {
  submissionId: SubmissionId
  /** Whether it was sent from an inbox, or through a domain alone. */
  origin: 'inbox' | 'domain'
  messageId: string
  inReplyTo: string | null
  referenceIds: string[]
  sender: MailboxValue
  recipients: MessageRow['recipients']
  subject: string
  text: string
  html: string | null
  attachments: AttachmentEntry[]
  rawId: string | null
  isRaw: boolean
  /** The bytes of the raw row, if they are already in memory. */
  rawBytes?: Buffer | null
  /** Further header fields. */
  headers: Record<string, string>
  createdAt: Date
}

type ClaimedRow = ClaimedDelivery & { progress: RoundStates | null }

const claiming = `select c.submission_id as "submissionId", c.position, c.organization_id as "organizationId", c.email,
  c.attempts, c.own_faults as "ownFaults", c.queued_at as "queuedAt", c.expires_at as "expiresAt", c.suppressed as "isSuppressed",
  c.progress from claim_due(`

/** Makes one claim under a lease; returns what it saw and claimed, or null if the lease has passed. */
async function claimOnce(
  db: Writer,
  { route, epoch, wanted, passedOver, rounds }: ClaimRequest,
  at: Date,
): Promise<{ progress: RoundStates; claimed: ClaimedDelivery[] } | null> {
  const named = new Arguments({
    route_key: route,
    lease_epoch: epoch,
    at,
    wanted,
    passed_over: passedOver,
    ...rounds.bounds,
  })
  const [first, ...claimed] = await db.query<ClaimedRow>(`${claiming}${named.of()}) c`, named.values)
  return first ? { progress: first.progress!, claimed } : null
}

/** A queue and the lease of its owner. */
interface QueueOwner {
  route: string
  epoch: number
  /** The owner's rounds, which continue from claim to claim. */
  rounds: RoundRobin
}

export interface ClaimRequest extends QueueOwner {
  wanted: number
  /** Organizations from which nothing is claimed. */
  passedOver: string[]
}

/**
 * Claims up to `wanted` due deliveries of the route, in round robin over organizations, none of those in `passedOver`. The
 * claim records the attempt. The cost does not grow with the number of waiting organizations. The result is empty only
 * after the claim has passed all of them.
 */
export async function claimDeliveries(db: Writer, claim: ClaimRequest, at: Date): Promise<ClaimedDelivery[]> {
  const { rounds } = claim
  for (let round = rounds.begin(at); ; ) {
    const found = await claimOnce(db, claim, at)
    if (!found) return []
    rounds.see(found.progress, at)
    if (found.claimed.length > 0) return found.claimed
    // An earlier claim's round may have passed organizations with due mail. Only an empty new round proves there is none.
    if (rounds.areOver && round === 'new') return []
    if (rounds.areOver) round = rounds.begin(at)
  }
}

/** Reads the content of the submissions' messages. Skips content that is deleted. */
export async function readContents(db: Queryable, ids: readonly SubmissionId[]): Promise<OutboundContent[]> {
  return await db.query<OutboundContent>(
    `select s.id as "submissionId", case when m.id is null then 'domain' else 'inbox' end as origin,
      coalesce(m.internet_message_id, x.internet_message_id) as "messageId", m.in_reply_to as "inReplyTo",
      coalesce(m.reference_ids, '{}') as "referenceIds", s.sender, coalesce(m.recipients, x.recipients) as recipients,
      s.subject, coalesce(m.text, x.text) as text, coalesce(m.html, x.html) as html,
      coalesce(m.attachments, '[]') as attachments, coalesce(m.raw_id, x.raw_id) as "rawId",
      coalesce(m.raw_whole, x.raw_id is not null) as "isRaw", coalesce(m.headers, x.headers, '{}') as headers, coalesce(m.created_at, x.created_at) as "createdAt"
    from submission s left join message m on m.id = s.message_id
    left join send_content x on x.submission_id = s.id and s.message_id is null
    where s.id = any($1) and (m.id is not null or x.submission_id is not null)`,
    [column('uuid', ids)],
  )
}

/**
 * Returns when the route's next delivery falls due; null if none waits. As in a claim, neither expired nor held
 * deliveries count.
 */
export async function nextDue(db: Writer, lease: QueueOwner, at: Date): Promise<Date | null> {
  const { rounds } = lease
  for (rounds.beginAnew(at); ; ) {
    const found = await claimOnce(db, { ...lease, wanted: 0, passedOver: [] }, at)
    if (!found) return null
    const dueMs = dueOf(found.progress)
    if (dueMs <= at.getTime()) {
      rounds.end()
      return new Date(dueMs)
    }
    rounds.see(found.progress, at)
    if (rounds.areOver) return Number.isFinite(rounds.dueMs) ? new Date(rounds.dueMs) : null
  }
}

/** Whether the organization's mail is held, for example because the organization is suspended. */
export async function isHeld(db: Queryable, organizationId: OrganizationId): Promise<boolean> {
  const active = await db.query(`select from organization where id = $1 and status = 'active'`, [
    organizationId,
  ])
  return active.length === 0
}

/** The result of a claimed delivery. Status null: it was not tried, and the claim is given back. */
export interface DeliveryResult {
  submissionId: SubmissionId
  position: number
  route: string
  epoch: number
  status: DeliveryStatus | null
  dueAt: Date | null
  response: string | null
  failureCode: string | null
  /** How many attempts a lasting fault of ours has ended so far. Absent if it did not end this attempt. */
  ownFaults?: number
  /** Whether the remote says that there is no such address: the address is then suppressed. */
  suppresses?: boolean
  /** Null if it was not tried. */
  outcome: Outcome | null
}

/** The row that records a recipient's attempt, or an event without an attempt. Up to three events are read from it. */
export interface Outcome extends Omit<EventFact, 'recipient' | 'response'> {
  /** When the recipient's first attempt was claimed. */
  queuedAt: Date | null
  /** When the attempt began; null if there was none. */
  beganAt: Date | null
  /** As `writeConversation` returns it. */
  conversation: string | null
}

/** Records a batch in one call. Returns for each result whether it counted under the lease that claimed it. */
export async function recordResults(db: Writer, results: DeliveryResult[], at: Date): Promise<boolean[]> {
  const named = new Arguments({ at, ...columnsOf(results), ...outcomeColumnsOf(results) })
  const recording = `select ordinal from record_results(${named.of()}) ordinal`
  const suppressed = results.flatMap(({ submissionId, position, suppresses }, i) =>
    suppresses
      ? [{ ordinal: i + 1, id: newUuid(), submission: submissionId, position, reason: 'hard_bounce' }]
      : [],
  )
  const counted =
    suppressed.length === 0
      ? await db.query<{ ordinal: number }>(recording, named.values)
      : await recordAndSuppress(db, recording, named, suppressed)
  const ordinals = new Set(counted.map(({ ordinal }) => ordinal))
  return results.map((_, i) => ordinals.has(i + 1))
}

function columnsOf(results: DeliveryResult[]): Record<string, Buffer> {
  return {
    submissions: column('uuid', pick(results, 'submissionId')),
    positions: column('integer', pick(results, 'position')),
    routes: column('text', pick(results, 'route')),
    epochs: column('bigint', pick(results, 'epoch')),
    statuses: column('text', pick(results, 'status')),
    due_times: column('timestamptz', pick(results, 'dueAt')),
    responses: column('text', pick(results, 'response')),
    failure_codes: column('text', pick(results, 'failureCode')),
    fault_counts: columnOf('integer', results, ({ ownFaults }) => ownFaults ?? null),
  }
}

const noOutcome = {
  id: null,
  type: null,
  at: null,
  attempt: null,
  remote: null,
  enhancedStatus: null,
  classification: null,
  queuedAt: null,
  beganAt: null,
  conversation: null,
}

function outcomeColumnsOf(results: DeliveryResult[]): Record<string, Buffer> {
  const outcomes = results.map(({ outcome }) => (outcome ? { ...outcome, id: newUuid() } : noOutcome))
  return {
    ids: columnOf('uuid', outcomes, ({ id }) => id),
    types: columnOf('text', outcomes, ({ type }) => type),
    times: columnOf('timestamptz', outcomes, ({ at }) => at),
    attempts: columnOf('integer', outcomes, ({ attempt }) => attempt),
    remotes: columnOf('jsonb', outcomes, ({ remote }) => remote),
    enhanced: columnOf('text', outcomes, ({ enhancedStatus }) => enhancedStatus),
    classes: columnOf('text', outcomes, ({ classification }) => classification),
    queued_times: columnOf('timestamptz', outcomes, ({ queuedAt }) => queuedAt),
    began_times: columnOf('timestamptz', outcomes, ({ beganAt }) => beganAt),
    conversations: columnOf('text', outcomes, ({ conversation }) => conversation),
  }
}

/** Records results and, in the same commit, suppresses the dead addresses of those that counted. */
async function recordAndSuppress(
  db: Writer,
  recording: string,
  { values }: Arguments,
  suppressed: object[],
): Promise<{ ordinal: number }[]> {
  return await db.query(
    `with counted as materialized (${recording}), dead as materialized (
      select suppress_addresses(coalesce(jsonb_agg(x.fact), '[]'), $1) from counted c
      join jsonb_array_elements($${values.length + 1}::jsonb) x(fact) on (x.fact->>'ordinal')::integer = c.ordinal
    )
    select counted.ordinal from counted cross join dead`,
    [...values, JSON.stringify(suppressed)],
  )
}

export interface DeliveryKey {
  submissionId: SubmissionId
  position: number
}

const keyColumns = `submission_id as "submissionId", position`
const waiting = `claim_epoch is null and status in ('pending', 'deferred')`
/** Queues with waiting mail. */
const queues = skipScan('queues', 'route', `delivery where ${waiting}`)

export async function findWaitingOfRoute(
  db: Queryable,
  route: string,
  limit: number,
): Promise<DeliveryKey[]> {
  return await db.query<DeliveryKey>(
    `select ${keyColumns} from delivery where route = $1 and ${waiting} limit $2`,
    [route, limit],
  )
}

/**
 * Finds the organization's waiting deliveries in all queues. Returns only those accepted before the id `before`, so that
 * a caller that goes through all of them comes to an end.
 */
export async function findWaitingOfOrganization(
  db: Queryable,
  organizationId: OrganizationId,
  before: string,
  limit: number,
): Promise<DeliveryKey[]> {
  return await db.query<DeliveryKey>(
    `with recursive ${queues}
    select w.* from queues cross join unnest(array['pending', 'deferred']) wanted_status cross join lateral (
      select ${keyColumns} from delivery
      where route = queues.route and status = wanted_status and organization_id = $1 and ${waiting} and submission_id < $2 limit $3
    ) w limit $3`,
    [organizationId, before, limit],
  )
}

/**
 * Moves waiting deliveries to the queue in which they now belong; returns how many. Runs after a change of the delivery
 * mode, or of a customer's MX from or to ours. `route` is `@relay` or `@capture`, or null if each domain has its own
 * queue.
 */
export async function moveToRoutes(
  db: Writer,
  route: string | null,
  localDomain: string,
  at: Date,
): Promise<number> {
  const isLocal = (name: string) =>
    `(${name} = $2 or ${name} in (select name from domain where status = 'verified' and inbound = 'verified'))`
  // The key of a queue may begin with the sender's wish for TLS, `requiretls:`, which stays. Mail for our
  // own nodes keeps it too, because the MX of its domain may cease to be ours. The pool of source addresses, `bulk:`,
  // stays with mail for servers of other domains.
  const wishes = '^(?:requiretls|anytls):'
  const wish = `coalesce(substring(delivery.route from '${wishes}'), '')`
  const pool = `coalesce(substring(regexp_replace(delivery.route, '${wishes}', '') from '^[a-z0-9-]+:'), '')`
  const proper = `${wish} || case when ${isLocal('domain')} then '@local' else coalesce($1, ${pool} || domain) end`
  const rows = await db.query<{ route: string }>(
    // Skips queues of a single domain whose deliveries already are where they belong.
    `with recursive ${queues}, misplaced as materialized (
      select m.* from queues cross join lateral (
        select submission_id, position, ${proper} as route from delivery
        where route = queues.route and ${waiting} and route <> ${proper} limit 5000 for update skip locked
      ) m
      where $1 is not null or queues.route ~ '(^|:)@' or ${isLocal(`substring(queues.route from '[^:]*$')`)}
      limit 5000
    ), added as (
      insert into route (key, paused, created_at)
      select distinct route, ${isPausedWith('misplaced.route')}, $3::timestamptz from misplaced on conflict do nothing
    )
    update delivery d set route = m.route from misplaced m
    where d.submission_id = m.submission_id and d.position = m.position returning d.route`,
    [route, localDomain, at],
  )
  return rows.length
}

/** Locks the submission's deliveries in order. Returns for each whether it waits and whether it is on the wire. */
export async function lockSubmissionDeliveries(
  tx: Tx,
  submissionId: SubmissionId,
): Promise<(DeliveryKey & { isOnWire: boolean; waits: boolean })[]> {
  return await tx.query(
    `select ${keyColumns}, claim_epoch is not null as "isOnWire", ${waiting} as waits from delivery
    where submission_id = $1 order by position for update`,
    [submissionId],
  )
}

/**
 * Locks the inbox's deliveries that have not ended, in order. Returns which are on the wire. The locks keep a delivery
 * from coming back from the wire between two queries.
 */
export async function lockInboxDeliveries(
  tx: Tx,
  inboxId: InboxId,
): Promise<(DeliveryKey & { isOnWire: boolean })[]> {
  return await tx.query(
    `select d.submission_id as "submissionId", d.position, d.claim_epoch is not null as "isOnWire"
    from submission s join delivery d on d.submission_id = s.id
    where s.inbox_id = $1 and s.status = 'pending' and d.status in ('pending', 'deferred')
    order by d.submission_id, d.position for update of d`,
    [inboxId],
  )
}
