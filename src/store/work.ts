// Work for jobs: mail to file, reports to read, messages to scan. All kinds use the same claims.
import type { OrganizationId } from '../base/ids.ts'
import { Arguments } from '../postgres/arguments.ts'
import type { Writer } from '../postgres/db.ts'
import type { DueCondition } from './due.ts'

export type WorkKind = 'mail' | 'report' | 'scan'

export interface WorkClaimRequest {
  limit: number
  maxBytes: number
  /** The last organization from which the previous claim took a row. */
  after?: OrganizationId | null
  /** Organizations from which nothing is claimed. */
  passedOver?: readonly OrganizationId[]
  /** The only organization whose work is claimed. */
  only?: OrganizationId | undefined
}

/** The claim that is written to its rows while it holds them. No two claims of a row are equal. */
export interface Claim {
  kind: WorkKind
  /** The number of the node. */
  owner: number
  /** When the claim ends, as the database writes it. */
  until: string
}

export interface ClaimedWork {
  claim: Claim
  ids: string[]
  /** The last organization from which this claim took a row. */
  last: OrganizationId | null
  /** Whether more can be claimed at once. */
  isMore: boolean
}

/**
 * `lease`: how long a claim of a living node holds, which is longer than any work takes. A node that hangs or is gone
 * holds no claim. A batch of mail is read within a minute. A scan may still begin an attachment after two minutes, and
 * asks clamd up to twice, for two and a half minutes each.
 */
const tables = {
  mail: { name: 'spool', id: 'id', dueAt: 'due_at', lease: '300 s' },
  report: { name: 'kept_mail', id: 'id', dueAt: 'retry_at', lease: '300 s' },
  scan: { name: 'scan', id: 'message_id', dueAt: 'due_at', lease: '600 s' },
}

/** Hold if rows of the kind exist. Few of them wait for a later time. */
export const workDue: Record<WorkKind, DueCondition> = {
  mail: 'exists (select from spool)',
  report: 'exists (select from kept_mail where turn is not null)',
  scan: 'exists (select from scan)',
}

/** The condition that a row is still the claim's. The two parameters hold the claim. */
export const isOfClaim = (owner: string, until: string) =>
  `claimed_by = ${owner} and claimed_until = ${until}::timestamptz`

/**
 * Claims up to `limit` due rows of up to `maxBytes` together, in round robin over organizations. A single row may be
 * larger, and a row that failed before is claimed alone. The worker later ends each row or puts it back. That commit checks
 * that the claim still holds the row.
 */
export async function claimWork(
  db: Writer,
  { kind, owner, at }: { kind: WorkKind; owner: number; at: Date },
  { limit, maxBytes, after, passedOver = [], only }: WorkClaimRequest,
): Promise<ClaimedWork> {
  const named = new Arguments({
    wanted_kind: kind,
    at,
    owner,
    lease: tables[kind].lease,
    wanted: limit,
    most_bytes: maxBytes,
    after: after ?? null,
    passed_over: passedOver,
    only_of: only ?? null,
  })
  const [row] = await db.query<Omit<ClaimedWork, 'claim'> & { until: string }>(
    `select claimed as ids, until::text, last, is_more as "isMore" from claim_work(${named.of()})`,
    named.values,
  )
  const { until, ...claimed } = row!
  return { claim: { kind, owner, until }, ...claimed }
}

/**
 * Ends the claim of unfinished rows. The rows keep their due time, or are due at `dueAt`. Returns those that the claim
 * still held.
 */
export async function putBackWork(
  db: Writer,
  { kind, owner, until }: Claim,
  ids: readonly string[],
  { dueAt = null, failures = 0 }: { dueAt?: Date | null; failures?: 0 | 1 } = {},
): Promise<string[]> {
  const table = tables[kind]
  const rows = await db.query<{ id: string }>(
    `update ${table.name} set claimed_by = null, claimed_until = null, failures = failures + $4,
      ${table.dueAt} = coalesce($5, ${table.dueAt})
    where ${table.id} = any($1) and ${isOfClaim('$2', '$3')} returning ${table.id} as id`,
    [ids, owner, until, failures, dueAt],
  )
  return rows.map(({ id }) => id)
}
