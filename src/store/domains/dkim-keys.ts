// Sealed DKIM keys by domain and selector: those of the deployment's own domains, and those of customers' domains.
import type { DomainId, OrganizationId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'
import type { DueCondition } from '../due.ts'

export interface DkimKeyRow {
  domain: string
  selector: string
  algorithm: 'rsa-sha256' | 'ed25519-sha256'
  sealedKey: Buffer
  publicRecord: string
}

/** A key with its state. Only `active` keys sign. A `pending` key was not yet seen in DNS. */
export interface KeyInLifeRow extends DkimKeyRow {
  state: 'pending' | 'active' | 'retired'
  retiredAt: Date | null
}

/** A key of a customer's domain. */
export interface DomainKeyRow extends KeyInLifeRow {
  domainId: DomainId
}

/** The owner of keys: a customer's claim on the name, or a domain of the deployment's own, which has no claim. */
export interface KeyOwner {
  domain: string
  domainId: DomainId | null
}

const columns = `domain, selector, algorithm, sealed_key as "sealedKey", public_record as "publicRecord", state,
  retired_at as "retiredAt"`

/** Holds if a key of the managed domain waits to be seen in DNS. */
export const managedKeysDue: DueCondition = `exists (select from dkim_key
  where domain = asked.managed_domain and domain_id is null and state = 'pending')`

/** Lists the keys of one of the deployment's own domains, in the order of creation, RSA before Ed25519. */
export async function listDkimKeys(db: Queryable, domain: string): Promise<KeyInLifeRow[]> {
  return await db.query<KeyInLifeRow>(
    `select ${columns} from dkim_key where domain = $1 and domain_id is null order by created_at, algorithm desc`,
    [domain],
  )
}

/** Inserts a key of the deployment's own, unless another node was first. */
export async function insertDkimKey(
  tx: Tx,
  row: DkimKeyRow & Pick<KeyInLifeRow, 'state'>,
  at: Date,
): Promise<void> {
  await tx.query(
    `insert into dkim_key (domain, selector, algorithm, sealed_key, public_record, state, created_at)
    values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing`,
    [row.domain, row.selector, row.algorithm, row.sealedKey, row.publicRecord, row.state, at],
  )
}

/** Lists the keys of customers' domains, in the order of creation, RSA before Ed25519. */
export async function listDomainKeys(db: Queryable, domainIds: DomainId[]): Promise<DomainKeyRow[]> {
  return await db.query<DomainKeyRow>(
    `select ${columns}, domain_id as "domainId" from dkim_key where domain_id = any($1)
    order by domain_id, created_at, algorithm desc`,
    [domainIds],
  )
}

/** Adds a pending key, which is not yet seen in DNS. */
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

const whose = 'domain = $1 and domain_id is not distinct from $2'

/**
 * Activates pending keys that were seen in DNS, and retires the active keys that they replace, by algorithm. Returns
 * whether anything changed.
 */
export async function activateFoundKeys(
  tx: Tx,
  { domain, domainId }: KeyOwner,
  selectors: readonly string[],
  at: Date,
): Promise<boolean> {
  const activated = await tx.query<{ selector: string; algorithm: string }>(
    `update dkim_key set state = 'active' where ${whose} and selector = any($3) and state = 'pending'
    returning selector, algorithm`,
    [domain, domainId, selectors],
  )
  if (activated.length === 0) return false
  const named = activated.map(({ selector }) => selector)
  await tx.query(
    `update dkim_key set state = 'retired', retired_at = $5
    where ${whose} and state = 'active' and algorithm = any($4) and selector <> all($3)`,
    [domain, domainId, named, activated.map(({ algorithm }) => algorithm), at],
  )
  return true
}

interface TakenKey extends Pick<KeyInLifeRow, 'state' | 'algorithm'> {
  domainId: DomainId | null
  organizationId: OrganizationId | null
}

/** Deletes a key and returns it; null if it is gone. */
export async function takeDkimKey(
  tx: Tx,
  { domain, selector }: Pick<DkimKeyRow, 'domain' | 'selector'>,
): Promise<TakenKey | null> {
  const [row] = await tx.query<TakenKey>(
    `delete from dkim_key where domain = $1 and selector = $2
    returning state, algorithm, domain_id as "domainId", organization_id as "organizationId"`,
    [domain, selector],
  )
  return row ?? null
}

/** Whether the domain has an active or pending key of the algorithm. */
export async function hasKeyInUse(
  tx: Tx,
  { domain, domainId }: KeyOwner,
  algorithm: DkimKeyRow['algorithm'],
): Promise<boolean> {
  const rows = await tx.query(
    `select from dkim_key where ${whose} and algorithm = $3 and state <> 'retired' limit 1`,
    [domain, domainId, algorithm],
  )
  return rows.length > 0
}

/** Holds if `deleteRetiredKeys` finds a key that was retired more than `keptMs` ago. */
export function retiredKeysDue(keptMs: number): DueCondition {
  return `exists (select from dkim_key where retired_at < asked.at - interval '${keptMs} ms')`
}

/** Deletes keys that were retired before `before`. */
export async function deleteRetiredKeys(tx: Tx, before: Date): Promise<void> {
  await tx.query('delete from dkim_key where retired_at < $1', [before])
}

/** Deletes the domain's retired keys except the newest `keep`. */
export async function trimRetiredKeys(tx: Tx, { domain, domainId }: KeyOwner, keep: number): Promise<void> {
  await tx.query(
    `delete from dkim_key where ${whose} and selector in (
      select selector from dkim_key where ${whose} and state = 'retired' order by retired_at desc offset $3)`,
    [domain, domainId, keep],
  )
}
