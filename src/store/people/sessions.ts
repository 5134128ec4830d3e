// Sessions of people, by the digest of their token.
import type { OrganizationId, PersonId, SessionId } from '../../base/ids.ts'
import type { Queryable, Tx, Writer } from '../../postgres/db.ts'
import type { PersonRow } from './people.ts'

export interface SessionRow {
  id: SessionId
  personId: PersonId
  /** The organization of its requests; null: none. */
  organizationId: OrganizationId | null
  userAgent: string
  ip: string
  createdAt: Date
  lastUsedAt: Date
}

const columns = `s.id, s.person_id as "personId", s.organization_id as "organizationId", s.user_agent as "userAgent", s.ip,
  s.created_at as "createdAt", s.last_used_at as "lastUsedAt"`

export async function insertSession(tx: Tx, row: SessionRow, hash: Buffer): Promise<void> {
  await tx.query(
    `insert into session (id, token_hash, person_id, organization_id, user_agent, ip, created_at, last_used_at)
    values ($1, $2, $3, $4, $5, $6, $7, $7)`,
    [row.id, hash, row.personId, row.organizationId, row.userAgent, row.ip, row.createdAt],
  )
}

/** Finds the sessions with these digests that were used since `since`, with their people. */
export async function findSessions(
  db: Queryable,
  hashes: readonly Buffer[],
  since: Date,
): Promise<
  (SessionRow & { hash: Buffer; person: Pick<PersonRow, 'email' | 'name'> & { hasPassword: boolean } })[]
> {
  return await db.query(
    `select ${columns}, s.token_hash as hash, jsonb_build_object('email', p.email, 'name', p.name,
      'hasPassword', p.password_hash is not null) as person
    from session s join person p on p.id = s.person_id
    where s.token_hash = any($1) and s.ended_at is null and s.last_used_at > $2`,
    [hashes, since],
  )
}

/** Returns those of the sessions that have not ended and were used since `since`. */
export async function listLiveSessions(
  db: Queryable,
  ids: readonly SessionId[],
  since: Date,
): Promise<SessionId[]> {
  const rows = await db.query<{ id: SessionId }>(
    'select id from session where id = any($1) and ended_at is null and last_used_at > $2',
    [ids, since],
  )
  return rows.map(({ id }) => id)
}

/** Whether the session has not ended. */
export async function isLive(tx: Tx, id: SessionId): Promise<boolean> {
  const rows = await tx.query('select from session where id = $1 and ended_at is null', [id])
  return rows.length > 0
}

/** Lists a person's sessions that have not ended, newest first, up to 100. */
export async function listSessions(db: Queryable, personId: PersonId, since: Date): Promise<SessionRow[]> {
  return await db.query<SessionRow>(
    `select ${columns} from session s where s.person_id = $1 and s.ended_at is null and s.last_used_at > $2
    order by s.id desc limit 100`,
    [personId, since],
  )
}

/** Notes that the sessions are in use. */
export async function touchSessions(db: Writer, ids: readonly SessionId[], at: Date): Promise<void> {
  await db.query('update session set last_used_at = $2 where id = any($1) and ended_at is null', [ids, at])
}

/** Ends one session of the person; returns false if there is no such live session. */
export async function endSession(tx: Tx, personId: PersonId, id: string, at: Date): Promise<boolean> {
  const rows = await tx.query(
    'update session set ended_at = $3 where person_id = $1 and id = $2 and ended_at is null returning id',
    [personId, id, at],
  )
  return rows.length > 0
}

/** Ends the session with this token's digest, whichever person has it. */
export async function endSessionByHash(tx: Tx, hash: Buffer, at: Date): Promise<void> {
  await tx.query('update session set ended_at = $2 where token_hash = $1 and ended_at is null', [hash, at])
}

/** Ends all sessions of the person except `keep`, if it is given. */
export async function endSessions(
  tx: Tx,
  personId: PersonId,
  keep: SessionId | null,
  at: Date,
): Promise<void> {
  await tx.query(
    'update session set ended_at = $3 where person_id = $1 and id is distinct from $2::uuid and ended_at is null',
    [personId, keep, at],
  )
}

/** Selects the organization of the session's requests. */
export async function chooseOrganization(
  db: Writer,
  id: SessionId,
  organizationId: OrganizationId,
): Promise<void> {
  await db.query('update session set organization_id = $2 where id = $1', [id, organizationId])
}
