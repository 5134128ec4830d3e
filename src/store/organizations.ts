// Organizations, their limits, and what they have used.
import type { OrganizationId } from '../base/ids.ts'
import type { Queryable, Tx } from './db.ts'

/** The limits of an organization by the leaf names of `GET /v1/me`. */
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
}

export interface OrganizationRow {
  id: OrganizationId
  name: string
  status: 'pending' | 'active' | 'suspended'
  limits: Limits
  managedUsed: number
  createdAt: Date
  updatedAt: Date
}

const columns = `id, name, status, limits, managed_used as "managedUsed", created_at as "createdAt", updated_at as "updatedAt"`

export async function insertOrganization(tx: Tx, row: Omit<OrganizationRow, 'managedUsed'>): Promise<void> {
  await tx.query(
    `insert into organization (id, name, status, limits, created_at, updated_at) values ($1, $2, $3, $4, $5, $6)`,
    [row.id, row.name, row.status, JSON.stringify(row.limits), row.createdAt, row.updatedAt],
  )
  await tx.query('insert into usage (organization_id) values ($1)', [row.id])
}

export async function findOrganization(db: Queryable, id: string): Promise<OrganizationRow | null> {
  const [row] = await db.query<OrganizationRow>(`select ${columns} from organization where id = $1`, [id])
  return row ?? null
}

export async function listOrganizations(db: Queryable): Promise<OrganizationRow[]> {
  return await db.query<OrganizationRow>(`select ${columns} from organization order by created_at, id`)
}

export async function updateOrganizationStatus(
  tx: Tx,
  id: string,
  status: string,
  at: Date,
): Promise<OrganizationRow | null> {
  const [row] = await tx.query<OrganizationRow>(
    `update organization set status = $2, updated_at = $3 where id = $1 returning ${columns}`,
    [id, status, at],
  )
  return row ?? null
}

/** Merges `limits` into those that stand. */
export async function updateLimits(
  tx: Tx,
  id: string,
  limits: Partial<Limits>,
  at: Date,
): Promise<OrganizationRow | null> {
  const [row] = await tx.query<OrganizationRow>(
    `update organization set limits = limits || $2::jsonb, updated_at = $3 where id = $1 returning ${columns}`,
    [id, JSON.stringify(limits), at],
  )
  return row ?? null
}

/** Takes one of the lifetime's managed inboxes; false when none is left. */
export async function takeManagedAllowance(tx: Tx, id: OrganizationId): Promise<boolean> {
  const rows = await tx.query(
    `update organization set managed_used = managed_used + 1
      where id = $1 and managed_used < (limits->>'managedStarter')::integer returning id`,
    [id],
  )
  return rows.length > 0
}

/** Holds the organization's row, so that what is counted against its limits cannot be created beside it. */
export async function lockOrganization(tx: Tx, id: OrganizationId): Promise<OrganizationRow | null> {
  const [row] = await tx.query<OrganizationRow>(
    `select ${columns} from organization where id = $1 for no key update`,
    [id],
  )
  return row ?? null
}
