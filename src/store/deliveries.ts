// Deliveries on their way: due, claimed, recorded, ended.
import type { InboxId, OrganizationId, SubmissionId } from '../base/ids.ts'
import { newUuid } from '../base/ids.ts'
import { column, pick } from './columns.ts'
import type { Queryable, Tx } from './db.ts'
import type { AttachmentEntry, MailboxValue, MessageRow } from './messages.ts'
import type { DeliveryStatus } from './status.ts'

export interface ClaimedDelivery {
  submissionId: SubmissionId
  position: number
  organizationId: OrganizationId
  email: string
  attempts: number
  queuedAt: Date
  expiresAt: Date
  /** Its address was suppressed since it was accepted. */
  isSuppressed: boolean
  /** At the first of a submission's deliveries that were claimed together. */
  content: OutboundContent | null
}

/** What a submission's message is composed of. */
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
  /** Further header fields. */
  headers: Record<string, string>
  createdAt: Date
}

type ClaimedRow = Omit<ClaimedDelivery, 'content'> &
  Omit<OutboundContent, 'messageId'> & { messageId: string | null }

const claiming = `select c.submission_id as "submissionId", c.position, c.organization_id as "organizationId", c.email,
  c.attempts, c.queued_at as "queuedAt", c.expires_at as "expiresAt", c.suppressed as "isSuppressed",
  case when c.has_inbox then 'inbox' else 'domain' end as origin, c.internet_message_id as "messageId",
  c.in_reply_to as "inReplyTo", coalesce(c.reference_ids, '{}') as "referenceIds", c.sender, c.recipients, c.subject,
  c.body as text, c.html, coalesce(c.attachments, '[]') as attachments, c.raw_id as "rawId",
  coalesce(c.headers, '{}') as headers, c.created_at as "createdAt"
  from claim_deliveries($1, $2, $3, $4) c`

/** Takes up to `wanted` due deliveries of the route, in turns by organization. The claim is the attempt's record. */
export async function claimDeliveries(
  db: Queryable,
  claim: { route: string; epoch: number; wanted: number },
  at: Date,
): Promise<ClaimedDelivery[]> {
  const rows = await db.query<ClaimedRow>(claiming, [claim.route, claim.epoch, at, claim.wanted])
  return rows.map(
    ({ position, organizationId, email, attempts, queuedAt, expiresAt, isSuppressed, ...rest }) => {
      const { submissionId, messageId } = rest
      const content = messageId === null ? null : { ...rest, messageId }
      return {
        submissionId,
        position,
        organizationId,
        email,
        attempts,
        queuedAt,
        expiresAt,
        isSuppressed,
        content,
      }
    },
  )
}

/** How a claimed delivery ended. Status null: it was not tried, and the claim is given back. */
export interface DeliveryResult {
  submissionId: SubmissionId
  position: number
  route: string
  epoch: number
  status: DeliveryStatus | null
  dueAt: Date | null
  response: string | null
  failureCode: string | null
  /** The remote says that there is no such address: nothing more is sent to it. */
  suppresses?: boolean
  facts: DeliveryFact[]
}

/** An event to come, told with the result that it belongs to. */
export interface DeliveryFact {
  type: string
  recipient: string
  at: Date
  attempt: number | null
  remote: { host: string; ip: string; tls: string | null } | null
  response: string | null
  enhancedStatus: string | null
  classification: string | null
}

const resultColumns = Array.from({ length: 19 }, (_, i) => `$${i + 1}`).join(', ')

/** One call a batch; answers for each result whether it counted under the lease that claimed it. */
export async function recordResults(db: Queryable, results: DeliveryResult[], at: Date): Promise<boolean[]> {
  const values = [at, ...columnsOf(results), ...factColumnsOf(results)]
  const suppressed = results.flatMap(({ submissionId, position, suppresses }, i) =>
    suppresses
      ? [{ place: i + 1, id: newUuid(), submission: submissionId, position, reason: 'hard_bounce' }]
      : [],
  )
  const counted =
    suppressed.length === 0
      ? await db.query<{ place: number }>(`select place from record_results(${resultColumns}) place`, values)
      : await db.query<{ place: number }>(recordAndSuppress, [...values, JSON.stringify(suppressed)])
  const places = new Set(counted.map(({ place }) => place))
  return results.map((_, i) => places.has(i + 1))
}

function columnsOf(results: DeliveryResult[]): Buffer[] {
  return [
    column('uuid', pick(results, 'submissionId')),
    column('integer', pick(results, 'position')),
    column('text', pick(results, 'route')),
    column('bigint', pick(results, 'epoch')),
    column('text', pick(results, 'status')),
    column('timestamptz', pick(results, 'dueAt')),
    column('text', pick(results, 'response')),
    column('text', pick(results, 'failureCode')),
  ]
}

function factColumnsOf(results: DeliveryResult[]): Buffer[] {
  const facts = results.flatMap((result) => result.facts)
  return [
    column(
      'integer',
      results.flatMap((result, i) => result.facts.map(() => i + 1)),
    ),
    column(
      'uuid',
      facts.map(() => newUuid()),
    ),
    column('text', pick(facts, 'type')),
    column('text', pick(facts, 'recipient')),
    column('timestamptz', pick(facts, 'at')),
    column('integer', pick(facts, 'attempt')),
    column('jsonb', pick(facts, 'remote')),
    column('text', pick(facts, 'response')),
    column('text', pick(facts, 'enhancedStatus')),
    column('text', pick(facts, 'classification')),
  ]
}

/** Of the results that counted, the dead addresses are suppressed in the same commit. */
const recordAndSuppress = `with counted as materialized (
    select place from record_results(${resultColumns}) place
  ), dead as materialized (
    select suppress_addresses(coalesce(jsonb_agg(x.fact), '[]'), $1) from counted c
    join jsonb_array_elements($20::jsonb) x(fact) on (x.fact->>'place')::integer = c.place
  )
  select counted.place from counted cross join dead`

export interface DeliveryPlace {
  submissionId: SubmissionId
  position: number
}

const places = `submission_id as "submissionId", position`
const waiting = `claim_epoch is null and status in ('pending', 'deferred')`

/** Deliveries past their lifetime that wait. */
export async function findExpired(db: Queryable, at: Date, limit: number): Promise<DeliveryPlace[]> {
  return await db.query<DeliveryPlace>(
    `select ${places} from delivery where expires_at <= $1 and ${waiting} order by expires_at limit $2`,
    [at, limit],
  )
}

export async function findWaitingOfRoute(
  db: Queryable,
  route: string,
  limit: number,
): Promise<DeliveryPlace[]> {
  return await db.query<DeliveryPlace>(
    `select ${places} from delivery where route = $1 and ${waiting} limit $2`,
    [route, limit],
  )
}

/**
 * Moves what waits in a queue that is no longer its own, as after a change of the delivery mode, or of a customer's MX
 * from or to ours; answers how much.
 * `route` is `@relay` or `@capture`, or null where each domain has its own queue.
 */
export async function moveToRoutes(
  db: Queryable,
  route: string | null,
  localDomain: string,
  at: Date,
): Promise<number> {
  const isLocal = (name: string) =>
    `(${name} = $2 or ${name} in (select name from domain where status = 'verified' and inbound = 'verified'))`
  const proper = `case when ${isLocal('domain')} then '@local' else coalesce($1, domain) end`
  const rows = await db.query<{ route: string }>(
    // Each queue with mail that waits is found by one look at the index; those that are a domain's own, and may be, are
    // not looked into.
    `with recursive queues as (
      (select route from delivery where ${waiting} order by route limit 1)
      union all
      select next.route from queues cross join lateral (
        select route from delivery where ${waiting} and route > queues.route order by route limit 1) next
    ), misplaced as materialized (
      select m.* from queues cross join lateral (
        select submission_id, position, ${proper} as route from delivery
        where route = queues.route and ${waiting} and route <> ${proper} limit 5000 for update skip locked
      ) m
      where $1 is not null or queues.route like '@%' or ${isLocal('queues.route')} limit 5000
    ), added as (
      insert into route (key, created_at) select distinct route, $3::timestamptz from misplaced on conflict do nothing
    )
    update delivery d set route = m.route from misplaced m
    where d.submission_id = m.submission_id and d.position = m.position returning d.route`,
    [route, localDomain, at],
  )
  return rows.length
}

/** The submission's deliveries that wait, and how many are on the wire; locked in order. */
export async function lockSubmissionDeliveries(
  tx: Tx,
  submissionId: SubmissionId,
): Promise<(DeliveryPlace & { onWire: boolean; waits: boolean })[]> {
  return await tx.query(
    `select ${places}, claim_epoch is not null as "onWire", ${waiting} as waits from delivery
    where submission_id = $1 order by position for update`,
    [submissionId],
  )
}

/**
 * The inbox's deliveries that have not ended, and which are on the wire; locked in order, so that none comes back from the
 * wire between two looks.
 */
export async function lockInboxDeliveries(
  tx: Tx,
  inboxId: InboxId,
): Promise<(DeliveryPlace & { onWire: boolean })[]> {
  return await tx.query(
    `select d.submission_id as "submissionId", d.position, d.claim_epoch is not null as "onWire"
    from submission s join delivery d on d.submission_id = s.id
    where s.inbox_id = $1 and s.status = 'pending' and d.status in ('pending', 'deferred')
    order by d.submission_id, d.position for update of d`,
    [inboxId],
  )
}

/** Ends deliveries that still wait, with one event each; answers how many. What is on the wire is left alone. */
export async function endWaiting(
  db: Queryable,
  ended: DeliveryPlace[],
  end: { failureCode: string; eventType: 'failed' | 'cancelled'; classification: string | null },
  at: Date,
): Promise<number> {
  if (ended.length === 0) return 0
  const rows = ended.map(({ submissionId, position }) => ({
    submission: submissionId,
    position,
    id: newUuid(),
  }))
  const [row] = await db.query<{ count: number }>('select end_waiting($1, $2, $3, $4, $5) as count', [
    ...[JSON.stringify(rows), end.failureCode, end.eventType, end.classification, at],
  ])
  return row!.count
}
