// The identity of a database: its id, and samples of the secrets that its secret key seals.
import type { WebhookId } from '../base/ids.ts'
import type { Queryable, Tx } from '../postgres/db.ts'
import type { DkimKeyRow } from './domains/dkim-keys.ts'

/** Returns the id of this database, with which its folder of blobs is marked. */
export async function readDatabaseId(db: Queryable): Promise<string> {
  const [row] = await db.query<{ id: string }>('select id from database_identity')
  return row!.id
}

/** Returns the identity, locked until the transaction ends. */
export async function lockIdentity(tx: Tx): Promise<{ id: string; hasBlobFolder: boolean }> {
  const [row] = await tx.query<{ id: string; hasBlobFolder: boolean }>(
    'select id, has_blob_folder as "hasBlobFolder" from database_identity for update',
  )
  return row!
}

/** Notes that a blob folder now has the mark of this database. */
export async function noteBlobFolder(tx: Tx): Promise<void> {
  await tx.query('update database_identity set has_blob_folder = true')
}

/** Returns one sealed secret of each kind, if there is any. */
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
