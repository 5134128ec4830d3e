// Inboxes and their addresses.
import type { DomainId, InboxId, OrganizationId } from '../../base/ids.ts'
import { Arguments } from '../../postgres/arguments.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'

export interface InboxRow {
  id: InboxId
  organizationId: OrganizationId
  localPart: string
  domain: string
  domainId: string | null
  displayName: string
  status: 'active' | 'deleted'
  createdAt: Date
  updatedAt: Date
  deletedAt: Date | null
}

const columns = `id, organization_id as "organizationId", local_part as "localPart", domain, domain_id as "domainId",
  display_name as "displayName", status, created_at as "createdAt", updated_at as "updatedAt", deleted_at as "deletedAt"`

/** Inserts the inbox. If its address is taken, the constraint `inbox_address` refuses it. */
export async function insertInbox(
  tx: Tx,
  row: Omit<InboxRow, 'status' | 'deletedAt'>,
  idempotency: { key: string; requestHash: Buffer } | null,
): Promise<void> {
  const named = new Arguments({
    id: row.id,
    organization_id: row.organizationId,
    local_part: row.localPart,
    domain: row.domain,
    domain_id: row.domainId,
    display_name: row.displayName,
    status: 'active',
    idempotency_key: idempotency?.key ?? null,
    request_hash: idempotency?.requestHash ?? null,
    created_at: row.createdAt,
    updated_at: row.updatedAt,
  })
  await tx.query(named.insertInto('inbox'), named.values)
}

/** The inboxes with these ids, deleted ones included. */
export async function findInboxes(db: Queryable, ids: string[]): Promise<InboxRow[]> {
  return await db.query<InboxRow>(`select ${columns} from inbox where id = any($1)`, [ids])
}

/** The organization's inbox, deleted ones included. */
export async function findInbox(
  db: Queryable,
  organizationId: OrganizationId,
  id: string,
): Promise<InboxRow | null> {
  const [row] = await db.query<InboxRow>(
    `select ${columns} from inbox where id = $2 and organization_id = $1`,
    [organizationId, id],
  )
  return row ?? null
}

export async function findInboxByIdempotencyKey(
  db: Queryable,
  organizationId: OrganizationId,
  key: string,
): Promise<(InboxRow & { requestHash: Buffer }) | null> {
  const [row] = await db.query<InboxRow & { requestHash: Buffer }>(
    `select ${columns}, request_hash as "requestHash" from inbox where organization_id = $1 and idempotency_key = $2`,
    [organizationId, key],
  )
  return row ?? null
}

/**
 * Returns the holder of an address on a managed domain: the active inbox, or else a deleted inbox of the organization that
 * last had the address.
 */
export async function findAddressHolder(
  db: Queryable,
  domain: string,
  localPart: string,
): Promise<InboxRow | null> {
  const [row] = await db.query<InboxRow>(
    `select ${columns} from inbox where domain = $1 and local_part = $2 and status in ('active', 'deleted')
    order by status limit 1`,
    [domain, localPart],
  )
  return row ?? null
}

/** Whether an active inbox under this claim on a domain has the address. Inboxes of a former owner do not count. */
export async function isOpenOnDomain(db: Queryable, domainId: DomainId, address: string): Promise<boolean> {
  const rows = await db.query(
    `select from inbox where domain = split_part($2, '@', 2) and local_part = split_part($2, '@', 1) and domain_id = $1
      and status = 'active'`,
    [domainId, address],
  )
  return rows.length > 0
}

export interface AddressedInbox {
  id: InboxId
  organizationId: OrganizationId
  address: string
  /**
   * How much more mail its organization may receive: messages today, and bytes within the limits of today and of stored
   * mail.
   */
  roomMessages: number
  roomBytes: number
}

/**
 * Finds the active inboxes at these `localPart@domain` addresses. An inbox of the domain's current owner comes before one
 * of a former owner.
 */
export async function findInboxesByAddress(
  db: Queryable,
  addresses: string[],
  at: Date,
): Promise<AddressedInbox[]> {
  return await db.query<AddressedInbox>(
    `select b.id, b.organization_id as "organizationId", a.address, room.messages as "roomMessages",
      least(room.bytes, room.kept_bytes + room.unfolded_bytes) as "roomBytes"
    from unnest($1::text[]) as a(address)
    cross join lateral (select i.id, i.organization_id from inbox i
      left join domain d on d.id = i.domain_id and d.status = 'verified'
      where i.domain = split_part(a.address, '@', 2) and i.local_part = split_part(a.address, '@', 1)
        and i.status = 'active' order by d.id is null limit 1) b
    cross join lateral received_room(b.organization_id, ($2::timestamptz at time zone 'UTC')::date) room`,
    [addresses, at],
  )
}

export async function countInboxes(
  db: Queryable,
  organizationId: OrganizationId,
  domainId: string | null,
): Promise<{ all: number; onDomain: number }> {
  const [row] = await db.query<{ all: number; onDomain: number }>(
    `select count(*) as "all", count(*) filter (where domain_id = $2) as "onDomain"
    from inbox where organization_id = $1 and status = 'active'`,
    [organizationId, domainId],
  )
  return row!
}

export interface InboxFilter {
  organizationId: OrganizationId
  ids: InboxId[] | null
  domainId: string | null
  text: string | null
}

/** Compares the active inboxes of an organization with `listedValues`, `$2` and `$3`. */
const isListed = `status = 'active' and ($2::text[] is null or id = any($2))
  and ($3::text is null or position(lower($3) in lower(local_part || '@' || domain || ' ' || display_name)) > 0)`

function listedValues({ organizationId, ids, text }: Omit<InboxFilter, 'domainId'>): unknown[] {
  return [organizationId, ids, text]
}

/** Lists active inboxes, newest first, after `beforeId`. */
export async function listInboxes(
  db: Queryable,
  filter: InboxFilter,
  beforeId: string | null,
  limit: number,
): Promise<InboxRow[]> {
  return await db.query<InboxRow>(
    `select ${columns} from inbox
    where organization_id = $1 and ${isListed} and ($4::uuid is null or domain_id = $4) and id < coalesce($5, 'inb_g')
    order by id desc limit $6`,
    [...listedValues(filter), filter.domainId, beforeId, limit],
  )
}

/**
 * Selects the active inboxes of the organization `$1` that meet the condition, from its part of the index alone. As a
 * constant, the organization would not count in the order, and the planner might read the inboxes of all organizations.
 */
export function organizationInboxes(condition: string): string {
  return `select b.* from inbox b where b.status = 'active' and ${condition} and b.organization_id = any(array[$1::uuid])
    order by b.organization_id desc, b.id desc`
}

export interface ActiveInboxRow extends InboxRow {
  /** The time of its newest message. Null if it has none. */
  lastMessageAt: Date | null
}

/** Lists active inboxes by their newest message, newest first, after `before`. Those without mail come last, as of 1970. */
export async function listInboxesByActivity(
  db: Queryable,
  filter: Omit<InboxFilter, 'domainId'>,
  before: { at: Date; id: string } | null,
  limit: number,
): Promise<ActiveInboxRow[]> {
  const at = `coalesce(n.last_message_at, 'epoch')`
  return await db.query<ActiveInboxRow>(
    `select ${columns}, n.last_message_at as "lastMessageAt" from (${organizationInboxes(isListed)}) b left join lateral (
      select t.last_message_at from thread t where t.inbox_id = b.id and (t.last_message_at, t.id) < ('infinity', '')
      order by t.last_message_at desc, t.id desc limit 1
    ) n on true
    where ($4::text is null or (${at}, id) < ($5, $4))
    order by ${at} desc, id desc limit $6`,
    [...listedValues(filter), before?.id ?? null, before?.at ?? null, limit],
  )
}

/** Locks the active ones of the inboxes, in the order of their ids, as `lockInbox` does. */
export async function lockInboxes(tx: Tx, ids: readonly InboxId[]): Promise<Set<InboxId>> {
  const rows = await tx.query<{ id: InboxId }>(
    `select id from inbox where id = any($1) and status = 'active' order by id for no key update`,
    [[...new Set(ids)]],
  )
  return new Set(rows.map(({ id }) => id))
}

/**
 * Locks the inbox against filing and acceptance. Returns null if it does not exist or is not active. Receiving never
 * waits for this lock: mail for an inbox that is being deleted is dropped when it is filed.
 */
export async function lockInbox(
  tx: Tx,
  organizationId: OrganizationId,
  id: string,
): Promise<InboxRow | null> {
  const [row] = await tx.query<InboxRow>(
    `select ${columns} from inbox where id = $2 and organization_id = $1 and status = 'active' for no key update`,
    [organizationId, id],
  )
  return row ?? null
}

/** Returns those of the inboxes that have a message above the given number, or that are gone (`seq` null). */
export async function findGrown(
  db: Queryable,
  seen: ReadonlyMap<string, number>,
): Promise<{ inboxId: string; seq: number | null }[]> {
  return await db.query(
    `select w.inbox_id as "inboxId", b.message_seq as seq from unnest($1::text[], $2::bigint[]) w(inbox_id, seq)
    left join lateral (select message_seq from inbox where id = w.inbox_id and status = 'active' limit 1) b on true
    where b.message_seq is null or b.message_seq > w.seq`,
    [[...seen.keys()], [...seen.values()]],
  )
}

export async function updateDisplayName(tx: Tx, id: InboxId, displayName: string, at: Date): Promise<void> {
  await tx.query('update inbox set display_name = $2, updated_at = $3 where id = $1', [id, displayName, at])
}

/** Leaves a tombstone without the display name. On a managed domain the address stays taken. */
export async function entombInbox(tx: Tx, id: InboxId, at: Date): Promise<void> {
  await tx.query(
    `update inbox set status = 'deleted', display_name = '', deleted_at = $2, updated_at = $2 where id = $1`,
    [id, at],
  )
}

/** Lists the deployment's former managed domains that still have inboxes, the first 20 by name. */
export async function listFormerDomains(
  db: Queryable,
  managedDomain: string,
): Promise<{ domain: string; inboxes: number }[]> {
  // Two ranges of the index skip the domain that nearly all of these inboxes are on.
  return await db.query(
    `select domain, count(*) as inboxes from inbox
    where domain_id is null and status = 'active' and (domain < $1 or domain > $1) group by domain order by domain limit 20`,
    [managedDomain],
  )
}
