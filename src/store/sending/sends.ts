// Stores sends: finds earlier sends by idempotency key, and accepts a batch in one statement.
import { sha256 } from '../../base/digest.ts'
import type { RefusalCode } from '../../base/errors.ts'
import type { InboxId, KeyId, OrganizationId, SubmissionId } from '../../base/ids.ts'
import { Arguments } from '../../postgres/arguments.ts'
import { column, columnOf, lines, pick } from '../../postgres/columns.ts'
import type { Queryable, Writer } from '../../postgres/db.ts'
import type { MessageRow } from '../mailbox/messages.ts'
import { packRaws, type RawRow, selectRaws } from '../mailbox/raws.ts'
import type { SendOperation, SubmissionRow } from './submissions.ts'

/** Returns the SHA-256 of the scope and the text of an idempotency key. The scope is the organization and the operation. */
export function idempotencyDigest(
  organizationId: OrganizationId,
  operation: SendOperation,
  key: string,
): Buffer {
  return sha256(`${organizationId} ${operation} ${key}`)
}

/** The send that was accepted before under an idempotency key. */
export interface EarlierSend {
  submissionId: SubmissionId
  /** Null: sent without an inbox. */
  inboxId: InboxId | null
  /** SHA-256 of the request. */
  requestHash: Buffer
  /** Whether its result has been deleted since. */
  isDeleted: boolean
}

/** Returns the earlier send under each digest, or null. */
export async function findEarlierSends(db: Queryable, digests: Buffer[]): Promise<(EarlierSend | null)[]> {
  const rows = await db.query<EarlierSend & { i: number }>(
    `select d.i::integer, s.* from unnest($1::bytea[]) with ordinality d(digest, i) cross join lateral (
      select s.id as "submissionId", s.inbox_id as "inboxId", s.request_hash as "requestHash",
        s.result_deleted or exists (select from inbox b where b.id = s.inbox_id and b.status = 'deleted') as "isDeleted"
      from submission s where s.idempotency_digest = d.digest limit 1
    ) s`,
    [column('bytea', digests)],
  )
  const found = new Map(rows.map(({ i, ...earlier }) => [i, earlier]))
  return digests.map((_, i) => found.get(i + 1) ?? null)
}

/** A send to check in advance. */
export interface AskedSend {
  organizationId: OrganizationId
  inboxId: string | null
  /** Address keys. */
  recipients: string[]
}

/** A volume limit, by its name in the organization's limits. */
export type SendLimit = 'messagesPerMinute' | 'messagesPerDay' | 'recipientsPerDay'

export interface ForeseenRefusal {
  code: RefusalCode
  retryAfterSeconds: number | null
  /** The exceeded limit. */
  limit: SendLimit | null
}

/** Returns the refusal that `decide_sends` would give now, without a lock; null if it would accept the send. */
export async function foreseeRefusal(
  db: Queryable,
  { organizationId, inboxId, recipients }: AskedSend,
  at: Date,
): Promise<ForeseenRefusal | null> {
  const [refusal] = await db.query<ForeseenRefusal>(
    `select coalesce(c.verdicts[1], 'send_limit_exceeded') as code, over.seconds as "retryAfterSeconds",
      case when c.verdicts[1] is null then exceeded_limit($1, c.counts[1], $4) end as "limit"
    from check_sends(at => $4, orgs => array[$1::uuid], keys => '{null}', digests => '{null}', hashes => '{null}',
      in_inboxes => array[$2], replied_threads => '{null}', subs => '{null}', recipient_counts => array[cardinality($3::text[])],
      to_sends => array_fill(1, array[cardinality($3)]), to_keys => $3) c
    left join lateral (
      select send_wait(o.limits, u, 1, c.counts[1], $4) as seconds from organization o join usage u on u.organization_id = o.id
      where o.id = $1 and c.verdicts[1] is null
    ) over on true
    where c.verdicts[1] is not null or over.seconds is not null`,
    [organizationId, inboxId, recipients, at],
  )
  return refusal ?? null
}

/** A new delivery to a recipient. */
export interface NewDelivery {
  email: string
  /** The address key. */
  key: string
  domain: string
  /** The queue in which it waits. */
  route: string
}

/** A send and the rows that it becomes. */
export interface NewSend {
  /** Null if the service itself sends. */
  keyId: KeyId | null
  /** Whether the organization's volume limits do not count it. */
  isUncounted: boolean
  operation: SendOperation
  idempotency: { key: string; digest: Buffer; requestHash: Buffer }
  submission: SubmissionRow
  /** Null for a send without an inbox, which has `content` instead. */
  message: MessageRow<string> | null
  content: DirectContent | null
  /** Whether the raw row is the whole message, as it is sent. Otherwise the message is composed. */
  isRaw: boolean
  /** Further header fields of a composed mail. */
  headers: Record<string, string>
  /** The thread that the message begins or joins, and the participants that it adds. */
  thread: { isNew: boolean; subject: string; participants: string[] } | null
  /** In the order of the submission's recipients. */
  deliveries: NewDelivery[]
  expiresAt: Date
}

/** The content of a send without an inbox. */
export interface DirectContent
  extends Pick<MessageRow<string>, 'internetMessageId' | 'recipients' | 'text' | 'html'> {
  /** The customer's domain from which it is sent. */
  domainId: string
  /** The raw row of a message that is sent as it is. */
  rawId: string | null
}

export interface SendVerdict {
  /** `accepted`, `replayed`, or the code of a refusal. */
  verdict: string
  submissionId: SubmissionId
  retryAfterSeconds: number | null
  /** The exceeded limit, if the verdict is `send_limit_exceeded`. */
  limit: SendLimit | null
  /** The ordinals of its suppressed recipients, from 0. */
  suppressed: number[]
}

/** Decides and stores a batch in one statement, with the raw rows of the sends. Returns a verdict for each send, in order. */
export async function acceptSends(
  db: Writer,
  sends: NewSend[],
  raws: RawRow[],
  at: Date,
): Promise<SendVerdict[]> {
  const columns = columnsOf(sends, at)
  const decided =
    raws.length === 0
      ? await db.query<SendVerdict>(acceptance, Object.values(columns))
      : await db.query<SendVerdict>(acceptanceWithRaws, Object.values({ ...columns, ...rawColumns(raws) }))
  let first = 1
  return decided.map((verdict, i) => {
    const suppressed = verdict.suppressed.map((ordinal) => ordinal - first)
    first += sends[i]!.deliveries.length
    return { ...verdict, suppressed }
  })
}

const noColumns = columnsOf([], new Date(0))
const acceptance = accepting(new Arguments(noColumns), '')
const withRaws = new Arguments({ ...noColumns, ...rawColumns([]) })
const acceptanceWithRaws = accepting(withRaws, `, stored as (${insertingRaws(withRaws)})`)

/**
 * Returns a statement that decides and then writes the passed sends, in one commit. It uses only names from `batch`.
 * `also`: a further part, which may use `passing`.
 */
function accepting(batch: Arguments, also: string): string {
  const inboxes = `${batch.parameter('in_inboxes')}::text[]`
  const decision = batch.of(
    'at orgs keys digests hashes in_inboxes replied_threads subs recipient_counts to_sends to_keys are_uncounted',
  )
  const submissions =
    batch.of(`at orgs digests hashes in_inboxes subs operations idempotency_keys ids senders subjects
    metadatas purposes times expiries to_sends to_positions to_emails to_keys to_domains to_routes`)
  const messages =
    batch.of(`orgs in_inboxes subs ids thread_ids are_replies internet_ids parents ref_lines senders
    visible_recipients participant_lines subjects thread_subjects bodies htmls metadatas purposes attachment_lists
    header_sets raw_ids are_raw times`)
  const contents = batch.of(
    'orgs in_inboxes subs domain_ids internet_ids visible_recipients bodies htmls header_sets raw_ids times',
  )
  return `with decided as materialized (select * from decide_sends(${decision})),
    passing as materialized (
      select array_agg(d.is_new order by d.i) as passed, array(select unnest(d.suppressed) from decided d) as suppressed
      from decided d having bool_or(d.is_new)
    ), written as materialized (
      select insert_sends(passed => p.passed, suppressed => p.suppressed, ${submissions}),
        (select insert_sent_messages(passed => p.passed, ${messages}) where array_remove(${inboxes}, null) <> '{}'),
        (select insert_send_contents(passed => p.passed, ${contents}) where array_position(${inboxes}, null) > 0)
      from passing p
    )${also}
    select d.verdict, d.submission_id as "submissionId", d.retry_after as "retryAfterSeconds", d.suppressed,
      case when d.verdict = 'send_limit_exceeded' then exceeded_limit((${batch.parameter('orgs')}::uuid[])[d.i],
        (${batch.parameter('recipient_counts')}::integer[])[d.i] - cardinality(d.suppressed), ${batch.parameter('at')})
        end as "limit"
    from decided d cross join (select count(*) from written) w order by d.i`
}

/** Inserts the raw rows of the sends that passed. */
function insertingRaws(batch: Arguments): string {
  const rows = selectRaws(batch.parameter('raw_rows'), batch.parameter('raw_contents'), batch.parameter('at'))
  return `insert into raw (id, size_bytes, bytes, blob, created_at) ${rows} where x.id in (
    select r.id from passing p, unnest(p.passed, ${batch.parameter('raw_ids')}::uuid[]) r(passes, id) where r.passes)`
}

function rawColumns(raws: RawRow[]): Record<string, unknown> {
  const { rows, bytes } = packRaws(raws)
  return { raw_rows: rows, raw_contents: bytes }
}

function columnsOf(sends: NewSend[], at: Date): Record<string, unknown> {
  const submissions = pick(sends, 'submission')
  const idempotencies = pick(sends, 'idempotency')
  return {
    at,
    orgs: column('uuid', pick(submissions, 'organizationId')),
    keys: column('uuid', pick(sends, 'keyId')),
    are_uncounted: column('boolean', pick(sends, 'isUncounted')),
    digests: column('bytea', pick(idempotencies, 'digest')),
    hashes: column('bytea', pick(idempotencies, 'requestHash')),
    idempotency_keys: column('text', pick(idempotencies, 'key')),
    operations: column('text', pick(sends, 'operation')),
    in_inboxes: column('text', pick(submissions, 'inboxId')),
    subs: column('uuid', pick(submissions, 'id')),
    ids: column('text', pick(submissions, 'messageId')),
    senders: column('jsonb', pick(submissions, 'sender')),
    subjects: column('text', pick(submissions, 'subject')),
    metadatas: column('jsonb', pick(submissions, 'metadata')),
    purposes: column('text', pick(submissions, 'purpose')),
    times: column('timestamptz', pick(submissions, 'createdAt')),
    expiries: column('timestamptz', pick(sends, 'expiresAt')),
    ...contentColumns(sends),
    ...threadColumns(sends),
    ...recipientColumns(sends),
  }
}

function contentColumns(sends: NewSend[]): Record<string, Buffer> {
  const contents = sends.map(({ message, content }) => message ?? content!)
  return {
    internet_ids: column('text', pick(contents, 'internetMessageId')),
    visible_recipients: column('jsonb', pick(contents, 'recipients')),
    bodies: column('text', pick(contents, 'text')),
    htmls: column('text', pick(contents, 'html')),
    parents: columnOf('text', sends, ({ message }) => message?.inReplyTo ?? null),
    ref_lines: column('text', lines(sends.map(({ message }) => message?.referenceIds ?? []))),
    attachment_lists: columnOf('jsonb', sends, ({ message }) => message?.attachments ?? []),
    raw_ids: column('uuid', pick(contents, 'rawId')),
    are_raw: column('boolean', pick(sends, 'isRaw')),
    domain_ids: columnOf('uuid', sends, ({ content }) => content?.domainId ?? null),
    header_sets: column('jsonb', pick(sends, 'headers')),
  }
}

function threadColumns(sends: NewSend[]): Record<string, Buffer> {
  const replied = sends.map(({ message, thread }) => (message && !thread?.isNew ? message.threadId : null))
  return {
    thread_ids: columnOf('text', sends, ({ message }) => message?.threadId ?? null),
    replied_threads: column('text', replied),
    are_replies: columnOf('boolean', replied, (id) => id !== null),
    thread_subjects: columnOf('text', sends, ({ thread }) => thread?.subject ?? null),
    participant_lines: column('text', lines(sends.map(({ thread }) => thread?.participants ?? []))),
  }
}

function recipientColumns(sends: NewSend[]): Record<string, Buffer> {
  const deliveries = sends.flatMap((send) => send.deliveries)
  return {
    recipient_counts: columnOf('integer', sends, (send) => send.deliveries.length),
    to_sends: column(
      'integer',
      sends.flatMap((send, i) => send.deliveries.map(() => i + 1)),
    ),
    to_positions: column(
      'integer',
      sends.flatMap((send) => send.deliveries.map((_, position) => position)),
    ),
    to_emails: column('text', pick(deliveries, 'email')),
    to_keys: column('text', pick(deliveries, 'key')),
    to_domains: column('text', pick(deliveries, 'domain')),
    to_routes: column('text', pick(deliveries, 'route')),
  }
}
