// API keys by the digest of their secret, and the requests that nodes have borrowed from a key's limit per minute.
import type { InboxId, KeyId, OrganizationId, PersonId } from '../../base/ids.ts'
import { Arguments } from '../../postgres/arguments.ts'
import type { Queryable, Tx, Writer } from '../../postgres/db.ts'
import { countRows, newestFirst } from '../rows.ts'
import type { Limits } from './organizations.ts'

export interface KeyRow {
  id: KeyId
  organizationId: OrganizationId
  name: string
  kind: 'agent' | 'server' | 'dashboard'
  scopes: string[]
  inboxIds: InboxId[] | null
  allowedIps: string[] | null
  sendMode: 'new_and_reply' | 'reply_only'
  allowedRecipientDomains: string[] | null
  /** Whether only a person may send the first message to an address. */
  confirmNewRecipients: boolean
  expiresAt: Date | null
  requestsPerMinute: number
  createdAt: Date
  revokedAt: Date | null
}

/** A live key with its organization, as every request needs them. */
export interface CallerRow extends KeyRow {
  organizationStatus: 'pending' | 'active' | 'suspended'
  limits: Limits
  /** The person whose sessions use the key; null if the key has its own secret. */
  personId: PersonId | null
  /** The maker of the key. A session's key was made by `personId`. Null: the operator made it. */
  madeBy: PersonId | null
}

const columns = `k.id, k.organization_id as "organizationId", k.name, k.kind, k.scopes, k.inbox_ids as "inboxIds",
  k.allowed_ips as "allowedIps", k.send_mode as "sendMode", k.allowed_recipient_domains as "allowedRecipientDomains",
  k.confirm_new_recipients as "confirmNewRecipients",
  k.expires_at as "expiresAt", k.created_at as "createdAt", k.revoked_at as "revokedAt",
  coalesce(k.requests_per_minute, (o.limits->>'requestsPerMinute')::integer) as "requestsPerMinute"`

/** A key without its own request rate has its organization's. */
type NewKey = Omit<KeyRow, 'revokedAt' | 'requestsPerMinute'> & {
  requestsPerMinute: number | null
  /** The person whose sessions use the key. Absent for a key with a secret. */
  personId?: PersonId
  /** The member who made it. Absent if the operator did. */
  madeBy?: PersonId
}

export async function insertKey(tx: Tx, row: NewKey, hash: Buffer): Promise<void> {
  const named = new Arguments({
    id: row.id,
    organization_id: row.organizationId,
    name: row.name,
    kind: row.kind,
    hash,
    scopes: row.scopes,
    inbox_ids: row.inboxIds,
    allowed_ips: row.allowedIps,
    send_mode: row.sendMode,
    allowed_recipient_domains: row.allowedRecipientDomains,
    confirm_new_recipients: row.confirmNewRecipients,
    expires_at: row.expiresAt,
    requests_per_minute: row.requestsPerMinute,
    person_id: row.personId ?? null,
    made_by: row.madeBy ?? null,
    created_at: row.createdAt,
  })
  await tx.query(named.insertInto('api_key'), named.values)
}

/** Finds the callers with these digests of secrets, if their keys are not revoked. */
export async function findCallers(
  db: Queryable,
  hashes: readonly Buffer[],
): Promise<(CallerRow & { hash: Buffer })[]> {
  return await db.query<CallerRow & { hash: Buffer }>(
    `select ${columns}, o.status as "organizationStatus", o.limits, k.person_id as "personId",
      k.made_by as "madeBy", k.hash
    from api_key k join organization o on o.id = k.organization_id where k.hash = any($1) and k.revoked_at is null`,
    [hashes],
  )
}

/** Finds the callers of these keys, if they are members' keys and not revoked. */
export async function findMemberCallers(db: Queryable, ids: readonly KeyId[]): Promise<CallerRow[]> {
  return await db.query<CallerRow>(
    `select ${columns}, o.status as "organizationStatus", o.limits, k.person_id as "personId", k.made_by as "madeBy"
    from api_key k join organization o on o.id = k.organization_id
    where k.id = any($1) and k.person_id is not null and k.revoked_at is null`,
    [ids],
  )
}

/** Returns those of the keys that can be used at this time. */
export async function listLiveKeys(db: Queryable, ids: readonly KeyId[], at: Date): Promise<KeyId[]> {
  const rows = await db.query<{ id: KeyId }>(
    `select k.id from api_key k join organization o on o.id = k.organization_id and o.status = 'active'
    where k.id = any($1) and k.revoked_at is null and (k.expires_at is null or k.expires_at > $2)`,
    [ids, at],
  )
  return rows.map(({ id }) => id)
}

/** Lists the keys that have a secret. */
export async function listKeys(db: Queryable, organizationId: string): Promise<KeyRow[]> {
  return await db.query<KeyRow>(
    `select ${columns} from api_key k join organization o on o.id = k.organization_id
    where k.organization_id = $1 and k.person_id is null order by k.id`,
    [organizationId],
  )
}

/** Finds the keys with a secret and this name that can be used at this time, oldest first. */
export async function findKeysNamed(
  db: Queryable,
  organizationId: string,
  name: string,
  at: Date,
): Promise<KeyRow[]> {
  return await db.query<KeyRow>(
    `select ${columns} from api_key k join organization o on o.id = k.organization_id
    where k.organization_id = $1 and k.person_id is null and k.name = $2 and k.revoked_at is null
      and (k.expires_at is null or k.expires_at > $3) order by k.id`,
    [organizationId, name, at],
  )
}

/** A key with its last use, and its own rate; null if it has the organization's rate. */
export interface UsedKeyRow extends KeyRow {
  ownRequestsPerMinute: number | null
  /** To the minute. */
  lastUsedAt: Date | null
  /** The member who made it, who may have left. Null: the operator, or a person whose account is gone. */
  maker: { name: string; email: string } | null
}

const used = `${columns}, k.requests_per_minute as "ownRequestsPerMinute",
  (select max(w.started_at) from request_window w where w.key_id = k.id) as "lastUsedAt",
  (select jsonb_build_object('name', p.name, 'email', p.email) from person p where p.id = k.made_by) as maker`

/** Lists the organization's keys that have a secret, newest first, after `beforeId`. */
export const listUsedKeys = newestFirst<UsedKeyRow>(
  used,
  `api_key k join organization o on o.id = k.organization_id where k.organization_id = $1 and k.person_id is null`,
  'k.id',
)

/** Finds one of the organization's keys that have a secret. */
export async function findUsedKey(
  db: Queryable,
  organizationId: OrganizationId,
  id: string,
): Promise<UsedKeyRow | null> {
  const [row] = await db.query<UsedKeyRow>(
    `select ${used} from api_key k join organization o on o.id = k.organization_id
    where k.organization_id = $1 and k.person_id is null and k.id = $2`,
    [organizationId, id],
  )
  return row ?? null
}

/** Whether the key may still change anything: it is not revoked, and not a viewer's. */
export async function mayStillChange(tx: Tx, id: KeyId): Promise<boolean> {
  const rows = await tx.query(
    `select from api_key k left join member m on m.key_id = k.id
    where k.id = $1 and k.revoked_at is null and (k.person_id is null or m.role <> 'viewer')`,
    [id],
  )
  return rows.length > 0
}

/** Counts the organization's usable keys that have a secret. */
export async function countLiveKeys(
  db: Queryable,
  organizationId: OrganizationId,
  at: Date,
): Promise<number> {
  const valid = `api_key where organization_id = $1 and person_id is null and revoked_at is null
      and (expires_at is null or expires_at > $2)`
  return await countRows(db, valid, [organizationId, at])
}

export async function revokeKey(tx: Tx, id: string, at: Date): Promise<KeyRow | null> {
  const [row] = await tx.query<KeyRow>(
    `update api_key k set revoked_at = coalesce(revoked_at, $2) from organization o
    where k.id = $1 and o.id = k.organization_id returning ${columns}`,
    [id, at],
  )
  return row ?? null
}

/**
 * Borrows up to `wanted` requests from the key's window that began at `windowStart`. Returns how many were `lent`, and how
 * many of the window's `requestsPerMinute` all nodes have borrowed (`granted`). Deletes earlier windows.
 */
export async function borrowRequests(
  db: Writer,
  { id, requestsPerMinute: limit }: { id: KeyId; requestsPerMinute: number },
  windowStart: Date,
  wanted: number,
): Promise<{ lent: number; granted: number }> {
  const [row] = await db.query<{ granted: number }>(
    `with past as (delete from request_window where key_id = $1 and started_at < $2::timestamptz - interval '1 minute')
    insert into request_window as w (key_id, started_at, granted)
    select id, $2, $3::integer from api_key where id = $1 for key share
    on conflict (key_id, started_at) do update set granted = w.granted + excluded.granted where w.granted < $4::integer
    returning granted`,
    [id, windowStart, wanted, limit],
  )
  const beyond = row ? Math.max(0, row.granted - limit) : wanted
  return { lent: wanted - beyond, granted: row ? row.granted - beyond : limit }
}
