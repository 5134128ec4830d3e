// Networks from which accounts have signed in, by a keyed digest of account and network.
import type { Queryable, Writer } from '../../postgres/db.ts'

/** A network stays known for this many days after its last sign-in. Then `stale-people.ts` deletes it. */
export const knownNetworkDays = 90

export async function rememberNetwork(db: Writer, subject: Buffer, at: Date): Promise<void> {
  await db.query(
    `insert into known_network as k (subject, last_at) values ($1, $2)
    on conflict (subject) do update set last_at = greatest(k.last_at, $2)`,
    [subject, at],
  )
}

export async function isNetworkKnown(db: Queryable, subject: Buffer, at: Date): Promise<boolean> {
  const rows = await db.query(
    `select 1 from known_network where subject = $1 and last_at >= $2::timestamptz - $3::integer * interval '1 day'`,
    [subject, at, knownNetworkDays],
  )
  return rows.length > 0
}
