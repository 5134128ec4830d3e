// Organizations, their limits, and their allowance of managed inboxes.
import type { OrganizationId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'
import { lockClasses } from '../../postgres/locks.ts'

/** The limits of an organization. Names of activity limits are the leaf names of `GET /v1/me`. */
export interface Limits {
  messagesPerMinute: number
  messagesPerDay: number
  recipientsPerDay: number
  requestsPerMinute: number
  recipientsPerMessage: number
  messageContentBytes: number
  inboxes: number
  domains: number
  inboxesPerDomain: number
  webhookEndpoints: number
  managedStarter: number
  receivedMessagesPerDay: number
  receivedBytesPerDay: number
  /** Bytes of received mail that it may store. */
  storedBytes: number
}

/** The operator's changes to what an organization may use. */
export type LimitChanges = Partial<Limits> & Partial<Pick<OrganizationRow, 'serverKeys'>>

/** Letters about an organization: `request` to the operator, `approval` to its owners. */
export type OrganizationLetter = 'request' | 'approval'

export interface OrganizationRow {
  id: OrganizationId
  name: string
  status: 'pending' | 'active' | 'suspended' | 'deleting'
  limits: Limits
  /** Whether its members may make server keys. */
  serverKeys: boolean
  managedUsed: number
  createdAt: Date
  updatedAt: Date
}

/** Organizations that an operator may still change. */
const staying = `status not in ('deleting', 'deleted')`

const columns = `id, name, status, limits, server_keys as "serverKeys", managed_used as "managedUsed",
  created_at as "createdAt", updated_at as "updatedAt"`

export async function insertOrganization(
  tx: Tx,
  row: Omit<OrganizationRow, 'managedUsed' | 'serverKeys'> & { letterDue?: OrganizationLetter | null },
): Promise<void> {
  await tx.query(
    `insert into organization (id, name, status, limits, letter_due, created_at, updated_at)
    values ($1, $2, $3, $4, $5, $6, $7)`,
    [
      ...[row.id, row.name, row.status, JSON.stringify(row.limits), row.letterDue ?? null],
      ...[row.createdAt, row.updatedAt],
    ],
  )
  await tx.query('insert into usage (organization_id) values ($1)', [row.id])
  await tx.query('insert into received_usage (organization_id) values ($1)', [row.id])
}

export async function findOrganization(db: Queryable, id: string): Promise<OrganizationRow | null> {
  const [row] = await db.query<OrganizationRow>(
    `select ${columns} from organization where id = $1 and status <> 'deleted'`,
    [id],
  )
  return row ?? null
}

export async function listOrganizations(db: Queryable): Promise<OrganizationRow[]> {
  return await db.query<OrganizationRow>(
    `select ${columns} from organization where status <> 'deleted' order by created_at, id`,
  )
}

/** Sets the status. Null: no such organization, or it is being deleted. The first approval makes its letter due. */
export async function updateOrganizationStatus(
  tx: Tx,
  id: string,
  status: string,
  at: Date,
): Promise<OrganizationRow | null> {
  const [row] = await tx.query<OrganizationRow>(
    `update organization set status = $2, updated_at = $3,
      letter_due = case when status = 'pending' and $2 = 'active' then 'approval' else letter_due end
    where id = $1 and (${staying} or $2 = 'deleting' and status = 'deleting') returning ${columns}`,
    [id, status, at],
  )
  return row ?? null
}

/** Leaves a tombstone with only the id, which the organization's former addresses refer to. */
export async function entombOrganization(tx: Tx, id: OrganizationId, at: Date): Promise<void> {
  await tx.query(
    `update organization set status = 'deleted', name = '', limits = '{}', letter_due = null, updated_at = $2 where id = $1`,
    [id, at],
  )
}

/** Changes the named limits and grants; null if there is no such organization, or it is being deleted. */
export async function updateLimits(
  tx: Tx,
  id: string,
  { serverKeys, ...limits }: LimitChanges,
  at: Date,
): Promise<OrganizationRow | null> {
  const [row] = await tx.query<OrganizationRow>(
    `update organization set limits = limits || $2::jsonb, server_keys = coalesce($4, server_keys), updated_at = $3
    where id = $1 and ${staying} returning ${columns}`,
    [id, JSON.stringify(limits), at, serverKeys ?? null],
  )
  return row ?? null
}

/** Takes one managed inbox of the organization's lifetime allowance; returns false if none is left. */
export async function takeManagedAllowance(tx: Tx, id: OrganizationId): Promise<boolean> {
  const rows = await tx.query(
    `update organization set managed_used = managed_used + 1
      where id = $1 and managed_used < (limits->>'managedStarter')::integer returning id`,
    [id],
  )
  return rows.length > 0
}

/** Locks the organization's row, so that no other transaction creates something that its limits count. */
export async function lockOrganization(tx: Tx, id: OrganizationId): Promise<OrganizationRow | null> {
  const [row] = await tx.query<OrganizationRow>(
    `select ${columns} from organization where id = $1 for no key update`,
    [id],
  )
  return row ?? null
}

/** Serializes the creation of the service's own organization and its inbox. */
export async function lockOwnOrganization(tx: Tx): Promise<void> {
  await tx.query('select pg_advisory_xact_lock($1, 0)', [lockClasses.ownInbox])
}

/** Renames the organization; null if there is none, or it is being deleted. */
export async function renameOrganization(
  tx: Tx,
  id: OrganizationId,
  name: string,
  at: Date,
): Promise<OrganizationRow | null> {
  const [row] = await tx.query<OrganizationRow>(
    `update organization set name = $2, updated_at = $3
    where id = $1 and ${staying} returning ${columns}`,
    [id, name, at],
  )
  return row ?? null
}
