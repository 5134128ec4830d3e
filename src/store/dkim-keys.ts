// Sealed DKIM keys by domain and selector.
import type { Queryable, Tx } from './db.ts'

export interface DkimKeyRow {
  domain: string
  selector: string
  algorithm: 'rsa-sha256' | 'ed25519-sha256'
  sealedKey: Buffer
  publicRecord: string
}

export async function listDkimKeys(db: Queryable, domain: string): Promise<DkimKeyRow[]> {
  return await db.query<DkimKeyRow>(
    `select domain, selector, algorithm, sealed_key as "sealedKey", public_record as "publicRecord"
    from dkim_key where domain = $1 order by selector`,
    [domain],
  )
}

/** Inserts the key unless another node was first. */
export async function insertDkimKey(tx: Tx, row: DkimKeyRow, at: Date): Promise<void> {
  await tx.query(
    `insert into dkim_key (domain, selector, algorithm, sealed_key, public_record, created_at)
    values ($1, $2, $3, $4, $5, $6) on conflict do nothing`,
    [row.domain, row.selector, row.algorithm, row.sealedKey, row.publicRecord, at],
  )
}
