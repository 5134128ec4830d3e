// Sessions of the operator, by the digest of their token: sessions without a person.
import type { Queryable, Tx } from '../../postgres/db.ts'

export interface OperatorSessionRow {
  id: string
  userAgent: string
  ip: string
  createdAt: Date
}

export async function insertOperatorSession(tx: Tx, row: OperatorSessionRow, hash: Buffer): Promise<void> {
  await tx.query(
    `insert into session (id, token_hash, user_agent, ip, created_at, last_used_at) values ($1, $2, $3, $4, $5, $5)`,
    [row.id, hash, row.userAgent, row.ip, row.createdAt],
  )
}

/** Finds the session if it began after `since` and has not ended. */
export async function findOperatorSession(
  db: Queryable,
  hash: Buffer,
  since: Date,
): Promise<OperatorSessionRow | null> {
  const [row] = await db.query<OperatorSessionRow>(
    `select id, user_agent as "userAgent", ip, created_at as "createdAt" from session
    where token_hash = $1 and person_id is null and ended_at is null and created_at > $2`,
    [hash, since],
  )
  return row ?? null
}

/** Ends the session, and deletes operator sessions that are too old or have ended. */
export async function endOperatorSession(tx: Tx, hash: Buffer, since: Date): Promise<void> {
  await tx.query(
    'delete from session where person_id is null and (token_hash = $1 or created_at <= $2 or ended_at is not null)',
    [hash, since],
  )
}
