// The secret keys of this database, by their check values: the one that seals, the one that comes next, and former ones.
import type { Db, Queryable, Tx, Writer } from '../postgres/db.ts'
import { holdLock, lockClasses } from '../postgres/locks.ts'
import { isNodeLock } from './nodes.ts'

export interface FormerKeyRow {
  check: Buffer
  /** Null: nobody comes back any more with what was made under it, or it was lost. */
  sealedVerifiers: Buffer | null
  replacedAt: Date
  /** Null: something may still be sealed with it. */
  endedAt: Date | null
}

export interface KeyState {
  /** Null before the first start. */
  current: Buffer | null
  next: Buffer | null
  former: FormerKeyRow[]
}

const identity = 'select secret_key_check as current, next_key_check as next from database_identity'

async function withFormer(db: Queryable, statement: string): Promise<KeyState> {
  const [row] = await db.query<Pick<KeyState, 'current' | 'next'>>(statement)
  // Asked once the lock is there: what was committed meanwhile is seen.
  const former = await db.query<FormerKeyRow>(
    `select key_check as check, sealed_verifiers as "sealedVerifiers", replaced_at as "replacedAt", ended_at as "endedAt"
    from former_secret_key order by replaced_at, key_check`,
  )
  return { ...row!, former }
}

export async function readKeyState(db: Queryable): Promise<KeyState> {
  return await withFormer(db, identity)
}

/** The same for one at a time: whoever has it settles which key it is. No secret is being stored meanwhile. */
export async function lockKeyState(tx: Tx): Promise<KeyState> {
  return await withFormer(tx, `${identity} for update`)
}

/** The same for who stores a secret: until the transaction ends no key does. */
export async function shareKeyState(tx: Tx): Promise<KeyState> {
  return await withFormer(tx, `${identity} for share`)
}

/** From now on the key seals. */
export async function writeKeyCheck(tx: Tx, check: Buffer): Promise<void> {
  await tx.query('update database_identity set secret_key_check = $1, next_key_check = null', [check])
}

/** Tells the nodes which key comes next. */
export async function announceKey(db: Writer, check: Buffer): Promise<void> {
  await db.query('update database_identity set next_key_check = $1', [check])
}

export async function insertFormerKey(
  tx: Tx,
  { check, sealedVerifiers, replacedAt, endedAt }: FormerKeyRow,
): Promise<void> {
  await tx.query(
    `insert into former_secret_key (key_check, sealed_verifiers, replaced_at, ended_at) values ($1, $2, $3, $4)
    on conflict (key_check) do update set sealed_verifiers = excluded.sealed_verifiers,
      replaced_at = excluded.replaced_at, ended_at = excluded.ended_at`,
    [check, sealedVerifiers, replacedAt, endedAt],
  )
}

/** Nothing is sealed with former keys any more. */
export async function endFormerKeys(tx: Tx, at: Date): Promise<void> {
  await tx.query('update former_secret_key set ended_at = $1 where ended_at is null', [at])
}

/** Forgets what knows the digests of all former keys. */
export async function clearVerifiers(tx: Tx): Promise<void> {
  await tx.query('update former_secret_key set sealed_verifiers = null')
}

/** Forgets what knows the digests of keys that ended before `before`. */
export async function deleteVerifiers(tx: Tx, before: Date): Promise<void> {
  await tx.query('update former_secret_key set sealed_verifiers = null where ended_at < $1', [before])
}

/** Holds the lock of who changes the secret key; null while another has it. It falls with the process. */
export async function lockRotation(db: Db): Promise<{ release(): void } | null> {
  return await holdLock(db, lockClasses.secret)
}

/** Says which keys the node has, the one that it seals with first. */
export async function writeNodeKeys(db: Writer, nodeId: number, checks: readonly Buffer[]): Promise<void> {
  await db.query('update node set key_checks = $2 where id = $1', [nodeId, checks])
}

export interface NodeKeys {
  id: number
  version: string | null
  operator: string | null
  /** Null: it has not said, or is of a version that does not. */
  checks: Buffer[] | null
}

/** What the living nodes have said of their keys. */
export async function listNodeKeys(db: Queryable): Promise<NodeKeys[]> {
  return await db.query<NodeKeys>(
    `select n.id, n.version, n.operator_address as operator, n.key_checks as checks from node n where exists (
      select from pg_locks l where ${isNodeLock} and l.objid = n.id) order by n.id`,
  )
}
