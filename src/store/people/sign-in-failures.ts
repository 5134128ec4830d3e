// Attempts that count against an account or a network, by keyed digests, and until when each is refused.
import type { Queryable, Writer } from '../../postgres/db.ts'

/** After `free` of them each one more is followed by a wait: `firstWaitSeconds`, then twice as long each time. */
export interface AttemptBound {
  free: number
  firstWaitSeconds: number
  longestWaitSeconds: number
}

/** Nobody is held to what happened longer ago. */
const forgottenAfter = `interval '1 day'`
/** Before any time that another attempt, or another node, may have read from its clock. */
const unblocked = `timestamptz 'epoch'`

/**
 * Counts an attempt, unless the subject has to wait: false then. One statement, so that attempts that are made at the same
 * time count one by one.
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

/** Until when the subject is refused. */
export async function findBlock(db: Queryable, subject: Buffer): Promise<Date | null> {
  const [row] = await db.query<{ until: Date }>(
    'select blocked_until as until from sign_in_failure where subject = $1',
    [subject],
  )
  return row?.until ?? null
}

/** Forgets all attempts of the subject. */
export async function clearAttempts(db: Writer, subject: Buffer): Promise<void> {
  await db.query('delete from sign_in_failure where subject = $1', [subject])
}

/** Takes back the last attempt of the subject, with the wait that it brought. */
export async function takeBackAttempt(db: Writer, subject: Buffer): Promise<void> {
  await db.query(
    `update sign_in_failure set failures = greatest(failures - 1, 0), blocked_until = ${unblocked} where subject = $1`,
    [subject],
  )
}
