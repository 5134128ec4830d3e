// Customers' domains: claims, their states, and their records as last seen in DNS.
import type { DomainId, OrganizationId } from '../../base/ids.ts'
import { Arguments } from '../../postgres/arguments.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'
import type { DueCondition } from '../due.ts'
import { countRows, newestFirst } from '../rows.ts'

export type DomainState = 'pending' | 'verified' | 'failed'

/** The result of the last check of ownership, outbound or inbound. Times are ISO 8601. */
export interface Standing {
  reasons: string[]
  checkedAt: string | null
  /** Failed checks in a row after a success, and the time of the first. */
  failures: number
  failingSince: string | null
}

/** The result for one record. `observed` is the answer of DNS, cut to a limited length. */
export interface Observation {
  status: 'valid' | 'missing' | 'mismatch' | 'error'
  observed: string[]
  checkedAt: string
}

export interface DomainRow {
  id: DomainId
  organizationId: OrganizationId
  /** A-labels, lower case. */
  name: string
  challenge: string
  /** The state of its ownership. */
  status: DomainState
  outbound: DomainState
  inbound: DomainState
  standing: { ownership: Standing; outbound: Standing; inbound: Standing }
  /** By `TYPE name`. */
  observations: Record<string, Observation>
  checkedAt: Date | null
  nextCheckAt: Date | null
  verifiedAt: Date | null
  createdAt: Date
  updatedAt: Date
}

const columns = `id, organization_id as "organizationId", name, challenge, status, outbound, inbound, standing, observations,
  checked_at as "checkedAt", next_check_at as "nextCheckAt", verified_at as "verifiedAt", created_at as "createdAt",
  updated_at as "updatedAt"`

export async function insertDomain(tx: Tx, row: DomainRow): Promise<void> {
  const { id, organizationId, name, challenge, createdAt } = row
  const named = new Arguments({
    id,
    organization_id: organizationId,
    name,
    challenge,
    created_at: createdAt,
    ...checkedColumns(row),
  })
  await tx.query(named.insertInto('domain'), named.values)
}

export async function findDomain(
  db: Queryable,
  organizationId: OrganizationId,
  id: string,
): Promise<DomainRow | null> {
  const [row] = await db.query<DomainRow>(
    `select ${columns} from domain where id = $2 and organization_id = $1`,
    [organizationId, id],
  )
  return row ?? null
}

/** Finds the organization's own claim on a name. */
export async function findClaim(
  db: Queryable,
  organizationId: OrganizationId,
  name: string,
): Promise<DomainRow | null> {
  const [row] = await db.query<DomainRow>(
    `select ${columns} from domain where organization_id = $1 and name = $2`,
    [organizationId, name],
  )
  return row ?? null
}

/** Whether any organization has registered the name, proved or not. */
export async function isClaimed(db: Queryable, name: string): Promise<boolean> {
  const rows = await db.query('select from domain where name = $1 limit 1', [name])
  return rows.length > 0
}

/** Whether an organization other than this one has proved the name. */
export async function isProvedByAnother(
  db: Queryable,
  organizationId: OrganizationId,
  name: string,
): Promise<boolean> {
  const rows = await db.query(
    `select from domain where name = $2 and status = 'verified' and organization_id <> $1`,
    [organizationId, name],
  )
  return rows.length > 0
}

/** Lists domains, newest first, after `beforeId`. */
export const listDomains = newestFirst<DomainRow>(columns, 'domain where organization_id = $1')

export async function countDomains(db: Queryable, organizationId: OrganizationId): Promise<number> {
  return await countRows(db, 'domain where organization_id = $1', [organizationId])
}

/** Locks the row; returns null if it is gone. */
export async function lockDomain(
  tx: Tx,
  organizationId: OrganizationId,
  id: string,
): Promise<DomainRow | null> {
  const [row] = await tx.query<DomainRow>(
    `select ${columns} from domain where id = $2 and organization_id = $1 for update`,
    [organizationId, id],
  )
  return row ?? null
}

/** Locks the name: until the transaction ends, no other can prove it. The transaction then sees all earlier proofs. */
export async function lockProof(tx: Tx, name: string): Promise<void> {
  await tx.query(`select pg_advisory_xact_lock(hashtextextended('domain ' || $1, 0))`, [name])
}

function checkedColumns(row: DomainRow): Record<string, unknown> {
  return {
    status: row.status,
    outbound: row.outbound,
    inbound: row.inbound,
    standing: JSON.stringify(row.standing),
    observations: JSON.stringify(row.observations),
    checked_at: row.checkedAt,
    next_check_at: row.nextCheckAt,
    verified_at: row.verifiedAt,
    updated_at: row.updatedAt,
  }
}

/** Writes the results of a check. */
export async function updateChecked(tx: Tx, row: DomainRow): Promise<void> {
  const checked = checkedColumns(row)
  const named = new Arguments({ id: row.id, ...checked })
  const assigned = named.assigned(Object.keys(checked).join(' '))
  await tx.query(`update domain set ${assigned} where id = ${named.parameter('id')}`, named.values)
}

export async function touchDomain(tx: Tx, id: DomainId, at: Date): Promise<void> {
  await tx.query('update domain set updated_at = $2 where id = $1', [id, at])
}

/** Holds if `claimDueDomains` finds a domain. */
export const domainsDue: DueCondition = 'exists (select from domain where next_check_at <= asked.at)'

/** Claims domains whose check is due, until `leaseUntil`. If the process dies, others can claim them then. */
export async function claimDueDomains(
  tx: Tx,
  at: Date,
  leaseUntil: Date,
  limit: number,
): Promise<Pick<DomainRow, 'id' | 'organizationId'>[]> {
  return await tx.query(
    `with due as materialized (
      select id from domain where next_check_at <= $1 order by next_check_at limit $3 for update skip locked
    )
    update domain d set next_check_at = $2 from due where d.id = due.id
    returning d.id, d.organization_id as "organizationId"`,
    [at, leaseUntil, limit],
  )
}

/** Deletes the domain with its keys. */
export async function deleteDomainRow(tx: Tx, id: DomainId): Promise<void> {
  await tx.query('delete from domain where id = $1', [id])
}
