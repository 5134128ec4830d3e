// MTA-STS policies of the domains that mail goes to: what was fetched, what failed, and which are fetched again.
import type { Queryable, Writer } from '../../postgres/db.ts'

export interface StoredPolicy {
  /** The id of the record for which it was fetched. Null, as is `mode`, if no policy was ever fetched. */
  id: string | null
  mode: 'enforce' | 'testing' | 'none' | null
  mx: string[]
  maxAgeSeconds: number | null
  expiresAt: Date | null
  failedAt: Date | null
  usedAt: Date
}

const columns = `p.id, p.mode, p.mx, p.max_age as "maxAgeSeconds", p.expires_at as "expiresAt", p.failed_at as "failedAt",
  p.used_at as "usedAt"`

export async function findPolicy(db: Queryable, domain: string): Promise<StoredPolicy | null> {
  const [row] = await db.query<StoredPolicy>(`select ${columns} from mta_sts_policy p where p.domain = $1`, [
    domain,
  ])
  return row ?? null
}

export interface FetchedPolicy {
  id: string
  mode: string
  mx: string[]
  maxAgeSeconds: number
  refreshAt: Date
}

/** Stores a policy that was fetched at `at`. `usedAt`: the time of the mail that needs it; null if no mail does now. */
export async function savePolicy(
  db: Writer,
  domain: string,
  { id, mode, mx, maxAgeSeconds, refreshAt }: FetchedPolicy,
  { at, usedAt }: { at: Date; usedAt: Date | null },
): Promise<void> {
  await db.query(
    `insert into mta_sts_policy as p (domain, id, mode, mx, max_age, fetched_at, expires_at, used_at, refresh_at)
    values ($1, $2, $3, $4, $5::integer, $6, $6::timestamptz + make_interval(secs => $5::integer),
      coalesce($7, $6::timestamptz), $8)
    on conflict (domain) do update set id = $2, mode = $3, mx = $4, max_age = excluded.max_age, fetched_at = $6,
      expires_at = excluded.expires_at, failed_at = null, failure = null, used_at = coalesce($7, p.used_at), refresh_at = $8`,
    [domain, id, mode, mx, maxAgeSeconds, at, usedAt, refreshAt],
  )
}

/** Notes that the policy could not be fetched. A policy that is stored stays. */
export async function saveFailure(
  db: Writer,
  domain: string,
  failure: string,
  { at, usedAt }: { at: Date; usedAt: Date | null },
): Promise<void> {
  await db.query(
    `insert into mta_sts_policy as p (domain, failed_at, failure, used_at)
    values ($1, $2, $3, coalesce($4, $2::timestamptz))
    on conflict (domain) do update set failed_at = $2, failure = $3, used_at = coalesce($4, p.used_at)`,
    [domain, at, failure, usedAt],
  )
}

/** Notes that mail goes to the domain, so that its policy is refreshed. */
export async function notePolicyUse(db: Writer, domain: string, at: Date): Promise<void> {
  await db.query(
    `update mta_sts_policy set used_at = $2,
      refresh_at = case when mode is not null then coalesce(refresh_at, $2) end where domain = $1`,
    [domain, at],
  )
}

/**
 * Takes up to `limit` policies that are due to be fetched again, and defers each to `retryAt`, so that no other node takes
 * it. Policies not used since `usedSince` are never taken again until mail goes to their domain. Returns the taken ones.
 */
export async function takeRefreshes(
  db: Writer,
  { at, retryAt, usedSince, limit }: { at: Date; retryAt: Date; usedSince: Date; limit: number },
): Promise<(StoredPolicy & { domain: string })[]> {
  return await db.query<StoredPolicy & { domain: string }>(
    `with due as (
      select domain from mta_sts_policy where refresh_at <= $1 order by refresh_at limit $4 for update skip locked
    ), taken as (
      update mta_sts_policy p set refresh_at = case when p.used_at >= $3 then $2::timestamptz end
      from due where p.domain = due.domain returning p.domain, p.refresh_at, ${columns}
    )
    select domain, id, mode, mx, "maxAgeSeconds", "expiresAt", "failedAt", "usedAt" from taken where refresh_at is not null`,
    [at, retryAt, usedSince, limit],
  )
}

/**
 * Deletes up to `limit` rows without a valid policy that were not used since `before`, and as many beyond the `max` that
 * were used last. Returns whether there may be more.
 */
export async function deleteUnusedPolicies(
  db: Writer,
  { before, max, limit }: { before: Date; max: number; limit: number },
): Promise<boolean> {
  const rows = await db.query(
    `with unused as (
      select domain from mta_sts_policy where used_at < $1 and coalesce(expires_at, $1) <= $1 limit $3
    ), excess as (
      select domain from mta_sts_policy where used_at <= (select used_at from mta_sts_policy order by used_at desc offset $2 limit 1)
      order by used_at limit $3
    )
    delete from mta_sts_policy where domain in (select domain from unused union select domain from excess) returning 1`,
    [before, max, limit],
  )
  return rows.length >= limit
}
