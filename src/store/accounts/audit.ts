// The audit log: who did what, when, and from which address.
import type { OrganizationId, PersonId } from '../../base/ids.ts'
import { firstUuidAt, newUuid } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'
import { lastUuid } from '../rows.ts'

export interface AuditEntry {
  id: string
  actor: string
  action: string
  subject: string
  detail: Record<string, unknown>
  ip: string | null
  at: Date
}

/** An entry to add. Without an organization it concerns the deployment. */
export type NewAuditEntry = Omit<AuditEntry, 'id'> & { organizationId: OrganizationId | null }

export async function insertAuditEntries(tx: Tx, entries: readonly NewAuditEntry[]): Promise<void> {
  if (entries.length === 0) return
  await tx.query(
    `insert into audit_entry (id, organization_id, actor, action, subject, detail, ip, at)
    select * from jsonb_to_recordset($1::jsonb) as e (id uuid, "organizationId" uuid, actor text, action text, subject text,
      detail jsonb, ip text, at timestamptz)`,
    [JSON.stringify(entries.map((entry) => ({ ...entry, id: newUuid() })))],
  )
}

/** Lists the organizations of which the person is a member. */
export async function listOrganizationsOf(tx: Tx, personId: PersonId): Promise<OrganizationId[]> {
  const rows = await tx.query<{ id: OrganizationId }>(
    'select organization_id as id from member where person_id = $1 order by organization_id',
    [personId],
  )
  return rows.map(({ id }) => id)
}

export interface AuditEntryAnywhere extends AuditEntry {
  /** Null: the entry concerns the deployment. */
  organizationId: OrganizationId | null
  organizationName: string | null
}

/** Lists entries of all organizations and of the deployment, newest first, after `beforeId`. */
export async function listAllAuditEntries(
  db: Queryable,
  beforeId: string | null,
  limit: number,
): Promise<AuditEntryAnywhere[]> {
  return await db.query<AuditEntryAnywhere>(
    `select e.id, e.actor, e.action, e.subject, e.detail, e.ip, e.at, e.organization_id as "organizationId",
      o.name as "organizationName"
    from audit_entry e left join organization o on o.id = e.organization_id
    where e.id < coalesce($1, '${lastUuid}'::uuid) order by e.id desc limit $2`,
    [beforeId, limit],
  )
}

/** Deletes up to `limit` entries from before `before`, oldest first: their ids begin with their time. Returns how many. */
export async function deleteAuditEntries(tx: Tx, before: Date, limit: number): Promise<number> {
  const rows = await tx.query(
    `delete from audit_entry where id = any(array(
      select id from audit_entry where id < $1::uuid order by id limit $2)) returning id`,
    [firstUuidAt(before.getTime()), limit],
  )
  return rows.length
}

/** Lists the organization's entries, newest first, after `beforeId`. */
export async function listAuditEntries(
  db: Queryable,
  organizationId: OrganizationId,
  beforeId: string | null,
  limit: number,
): Promise<AuditEntry[]> {
  return await db.query<AuditEntry>(
    `select id, actor, action, subject, detail, ip, at from audit_entry
    where organization_id = $1 and id < coalesce($2, '${lastUuid}'::uuid)
    order by id desc limit $3`,
    [organizationId, beforeId, limit],
  )
}
