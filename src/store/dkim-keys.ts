// Sealed DKIM keys by domain and selector: the deployment's own, and those of customers' domains.
import type { DomainId, OrganizationId } from '../base/ids.ts'
import type { Queryable, Tx } from '../postgres/db.ts'

export interface DkimKeyRow {
  domain: string
  selector: string
  algorithm: 'rsa-sha256' | 'ed25519-sha256'
  sealedKey: Buffer
  publicRecord: string
}

/** A key of a customer's domain. Only `active` ones sign: pending ones have not been seen in DNS. */
export interface DomainKeyRow extends DkimKeyRow {
  domainId: DomainId
  state: 'pending' | 'active' | 'retired'
}

const columns = `domain, selector, algorithm, sealed_key as "sealedKey", public_record as "publicRecord"`

/** The keys of a domain of the deployment's own. */
export async function listDkimKeys(db: Queryable, domain: string): Promise<DkimKeyRow[]> {
  return await db.query<DkimKeyRow>(
    `select ${columns} from dkim_key where domain = $1 and domain_id is null order by selector`,
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

/** The keys of customers' domains, in the order in which they were made; RSA before Ed25519. */
export async function listDomainKeys(db: Queryable, domainIds: DomainId[]): Promise<DomainKeyRow[]> {
  return await db.query<DomainKeyRow>(
    `select ${columns}, domain_id as "domainId", state from dkim_key where domain_id = any($1)
    order by domain_id, created_at, algorithm desc`,
    [domainIds],
  )
}

/** Adds a key that waits to be seen. */
export async function insertDomainKey(
  tx: Tx,
  row: DkimKeyRow & { domainId: DomainId; organizationId: OrganizationId },
  at: Date,
): Promise<void> {
  await tx.query(
    `insert into dkim_key (domain, selector, organization_id, domain_id, algorithm, sealed_key, public_record, state,
      created_at)
    values ($1, $2, $3, $4, $5, $6, $7, 'pending', $8)`,
    [
      ...[row.domain, row.selector, row.organizationId, row.domainId, row.algorithm],
      ...[row.sealedKey, row.publicRecord, at],
    ],
  )
}

/** Lets keys that were seen sign, in place of those of the same algorithm; true when that changed anything. */
export async function activateFoundKeys(
  tx: Tx,
  domainId: DomainId,
  selectors: string[],
  at: Date,
): Promise<boolean> {
  const activated = await tx.query<{ selector: string; algorithm: string }>(
    `update dkim_key set state = 'active' where domain_id = $1 and selector = any($2) and state = 'pending'
    returning selector, algorithm`,
    [domainId, selectors],
  )
  if (activated.length === 0) return false
  await tx.query(
    `update dkim_key set state = 'retired', retired_at = $4
    where domain_id = $1 and state = 'active' and algorithm = any($3) and selector <> all($2)`,
    [domainId, activated.map(({ selector }) => selector), activated.map(({ algorithm }) => algorithm), at],
  )
  return true
}

/** Erases keys that were retired before `before`. */
export async function deleteRetiredKeys(tx: Tx, before: Date): Promise<void> {
  await tx.query('delete from dkim_key where retired_at < $1', [before])
}

/** Erases the domain's retired keys but for the newest `keep`. */
export async function trimRetiredKeys(tx: Tx, domainId: DomainId, keep: number): Promise<void> {
  await tx.query(
    `delete from dkim_key where domain_id = $1 and selector in (
      select selector from dkim_key where domain_id = $1 and state = 'retired' order by retired_at desc offset $2)`,
    [domainId, keep],
  )
}
