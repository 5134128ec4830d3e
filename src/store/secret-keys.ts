// The secret keys of this database, by their check values: the current key, which seals, and former ones.
import type { Queryable, Tx } from '../postgres/db.ts'

export interface FormerKeyRow {
  check: Buffer
  /** The sealed verifiers of digests made with this key. Null: all such digests have expired, or a key was lost. */
  sealedVerifiers: Buffer | null
}

export interface KeyState {
  /** Null before the first start. */
  current: Buffer | null
  former: FormerKeyRow[]
}

const identity = 'select secret_key_check as current from database_identity'

async function withFormer(db: Queryable, statement: string): Promise<KeyState> {
  const [row] = await db.query<Pick<KeyState, 'current'>>(statement)
  // Queried while the lock is held, so that it sees keys that were committed during the wait.
  const former = await db.query<FormerKeyRow>(
    `select key_check as check, sealed_verifiers as "sealedVerifiers" from former_secret_key order by replaced_at, key_check`,
  )
  return { ...row!, former }
}

export async function readKeyState(db: Queryable): Promise<KeyState> {
  return await withFormer(db, identity)
}

/** Reads the key state under a lock for the one caller that decides which key seals. Secrets cannot be stored meanwhile. */
export async function lockKeyState(tx: Tx): Promise<KeyState> {
  return await withFormer(tx, `${identity} for update`)
}

/** Reads the key state to store a secret. Until the transaction ends the key cannot change. */
export async function shareKeyState(tx: Tx): Promise<KeyState> {
  return await withFormer(tx, `${identity} for share`)
}

/** Makes this the key that seals. */
export async function writeKeyCheck(tx: Tx, check: Buffer): Promise<void> {
  await tx.query('update database_identity set secret_key_check = $1', [check])
}

/** Notes that this key no longer seals anything. */
export async function insertFormerKey(
  tx: Tx,
  { check, sealedVerifiers, at }: FormerKeyRow & { at: Date },
): Promise<void> {
  await tx.query(
    `insert into former_secret_key (key_check, sealed_verifiers, replaced_at, ended_at) values ($1, $2, $3, $3)
    on conflict (key_check) do update set sealed_verifiers = excluded.sealed_verifiers,
      replaced_at = excluded.replaced_at, ended_at = excluded.ended_at`,
    [check, sealedVerifiers, at],
  )
}

/** Deletes the verifiers for digests of all former keys. */
export async function clearVerifiers(tx: Tx): Promise<void> {
  await tx.query('update former_secret_key set sealed_verifiers = null')
}

/** Deletes the verifiers for digests of keys that ended before `before`. */
export async function deleteVerifiers(tx: Tx, before: Date): Promise<void> {
  await tx.query('update former_secret_key set sealed_verifiers = null where ended_at < $1', [before])
}
