// What a database is known by: its id, the check value of the secret key that seals its secrets, and samples of these.
import type { WebhookId } from '../base/ids.ts'
import type { Queryable, Tx } from '../postgres/db.ts'
import type { DkimKeyRow } from './dkim-keys.ts'

/** The id of this database, by which a folder of blobs is marked as its own. */
export async function readDatabaseId(db: Queryable): Promise<string> {
  const [row] = await db.query<{ id: string }>('select id from database_identity')
  return row!.id
}

/** The check value of the secret key; null before the first start. */
export async function readKeyCheck(db: Queryable): Promise<Buffer | null> {
  const [row] = await db.query<{ check: Buffer | null }>(
    'select secret_key_check as check from database_identity',
  )
  return row!.check
}

/** The same for one at a time: whoever has it settles which key it is. */
export async function lockKeyCheck(tx: Tx): Promise<Buffer | null> {
  const [row] = await tx.query<{ check: Buffer | null }>(
    'select secret_key_check as check from database_identity for update',
  )
  return row!.check
}

export async function writeKeyCheck(tx: Tx, check: Buffer): Promise<void> {
  await tx.query('update database_identity set secret_key_check = $1', [check])
}

/** One sealed secret of each kind, if there is any. */
export async function findSealed(db: Queryable): Promise<{
  dkimKey: DkimKeyRow | undefined
  webhook: { id: WebhookId; sealed: Buffer } | undefined
}> {
  const [dkimKey] = await db.query<DkimKeyRow>(
    `select domain, selector, algorithm, sealed_key as "sealedKey", public_record as "publicRecord"
    from dkim_key order by domain, selector limit 1`,
  )
  const [webhook] = await db.query<{ id: WebhookId; sealed: Buffer }>(
    `select id, sealed_secret as sealed from webhook where status <> 'deleted' order by id limit 1`,
  )
  return { dkimKey, webhook }
}
