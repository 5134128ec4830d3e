// Counts sign-in attempts by account and by network (keyed digests), and refuses further attempts for a time.
import type { Queryable, Writer } from '../../postgres/db.ts'

/** After `free` attempts, each further one causes a wait: first `firstWaitSeconds`, then twice as long each time. */
export interface AttemptBound {
  free: number
  firstWaitSeconds: number
  longestWaitSeconds: number
}

/** Older attempts no longer count. */
const forgottenAfter = `interval '1 day'`
/** Not blocked: a time that is earlier than any node's clock. */
const unblocked = `timestamptz 'epoch'`

/**
 * Counts an attempt. Returns false if the subject must wait. One statement does both, so that simultaneous attempts are
 * counted one by one.
 */
export async function countAttempt(
  db: Writer,
  subject: Buffer,
  { free, firstWaitSeconds, longestWaitSeconds }: AttemptBound,
  at: Date,
): Promise<boolean> {
  const rows = await db.query(
    `insert into sign_in_failure as f (subject, failures, blocked_until, last_at) values ($1, 1, ${unblocked}, $2)
    on conflict (subject) do update set last_at = $2,
      failures = case when f.last_at < $2::timestamptz - ${forgottenAfter} then 1 else f.failures + 1 end,
      blocked_until = case when f.failures + 1 < $3::integer or f.last_at < $2::timestamptz - ${forgottenAfter} then ${unblocked}
        else $2::timestamptz
          + least($4::integer * 2::numeric ^ least(f.failures + 1 - $3::integer, 30), $5::integer) * interval '1 second' end
    where f.blocked_until <= $2 returning subject`,
    [subject, at, free, firstWaitSeconds, longestWaitSeconds],
  )
  return rows.length > 0
}

/** Returns the time until which the subject is refused; null if it has no attempts. */
export async function findBlock(db: Queryable, subject: Buffer): Promise<Date | null> {
  const [row] = await db.query<{ until: Date }>(
    'select blocked_until as until from sign_in_failure where subject = $1',
    [subject],
  )
  return row?.until ?? null
}

/** Deletes all attempts of the subject. */
export async function clearAttempts(db: Writer, subject: Buffer): Promise<void> {
  await db.query('delete from sign_in_failure where subject = $1', [subject])
}

/** Reverts the last attempt of the subject, and the wait that it caused. */
export async function takeBackAttempt(db: Writer, subject: Buffer): Promise<void> {
  await db.query(
    `update sign_in_failure set failures = greatest(failures - 1, 0), blocked_until = ${unblocked} where subject = $1`,
    [subject],
  )
}
