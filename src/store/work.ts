// What jobs do: mail that waits to be filed, reports to be read, messages to be scanned. One kind of claim for all of it.
import type { OrganizationId } from '../base/ids.ts'
import { Arguments } from '../postgres/arguments.ts'
import type { Writer } from '../postgres/db.ts'

export type WorkKind = 'mail' | 'report' | 'scan'

export interface WorkClaim {
  limit: number
  maxBytes: number
  /** The organization that had the last turn. */
  behind?: OrganizationId | null
  /** Organizations that have no turn. */
  passedOver?: readonly OrganizationId[]
  /** The one organization whose work is wanted. */
  only?: OrganizationId | undefined
}

/** What stands in the rows for as long as they are this claim's: no two claims of a row have the same. */
export interface Claim {
  kind: WorkKind
  /** The number of the node. */
  owner: number
  /** Until when it holds, as the database writes it. */
  until: string
}

export interface ClaimedWork {
  claim: Claim
  ids: string[]
  /** Who had the last turn. */
  last: OrganizationId | null
  /** Whether there is more to be had at once. */
  isMore: boolean
}

/**
 * `lease`: how long a claim holds of a node that is up, which is longer than anything is worked on. Of one that hangs or
 * is gone no claim holds. A batch of mail is read within a minute; clamd may be begun with
 * an attachment after two, and asked twice, for two and a half each.
 */
const tables = {
  mail: { name: 'spool', id: 'id', dueAt: 'due_at', lease: '300 s' },
  report: { name: 'kept_mail', id: 'id', dueAt: 'retry_at', lease: '300 s' },
  scan: { name: 'scan', id: 'message_id', dueAt: 'due_at', lease: '600 s' },
}

/** That a row is still the claim's, which stands in these two parameters. */
export const isOfClaim = (owner: string, until: string) =>
  `claimed_by = ${owner} and claimed_until = ${until}::timestamptz`

/**
 * Claims up to `limit` due rows, and no more than weigh `maxBytes` together unless it is a single one, of organizations in
 * turn; one that failed before is claimed alone. Whoever works on them ends each or puts it back, in a commit that asks
 * whether it is still the claim's.
 */
export async function claimWork(
  db: Writer,
  { kind, owner, at }: { kind: WorkKind; owner: number; at: Date },
  { limit, maxBytes, behind, passedOver = [], only }: WorkClaim,
): Promise<ClaimedWork> {
  const named = new Arguments({
    wanted_kind: kind,
    at,
    owner,
    lease: tables[kind].lease,
    wanted: limit,
    most_bytes: maxBytes,
    behind: behind ?? null,
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

/** Ends the claim of rows whose work is not done: due again when they were, or at `dueAt`. Returns those that were the claim's. */
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
