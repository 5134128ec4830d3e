// The members of an organization, each with a role that defines their permissions there.
import type { KeyId, OrganizationId, PersonId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'
import { countRows } from '../rows.ts'
import type { MemberRole } from './people.ts'

export interface MemberRow {
  personId: PersonId
  email: string
  name: string
  role: MemberRole
  createdAt: Date
  /** When a session of the member was last used for this organization. */
  lastSeenAt: Date | null
}

/** Lists members, oldest first. */
export async function listMembers(db: Queryable, organizationId: OrganizationId): Promise<MemberRow[]> {
  return await db.query<MemberRow>(
    `select m.person_id as "personId", p.email, p.name, m.role, m.created_at as "createdAt",
      (select max(s.last_used_at) from session s
        where s.person_id = m.person_id and s.organization_id = m.organization_id) as "lastSeenAt"
    from member m join person p on p.id = m.person_id where m.organization_id = $1 order by m.created_at, p.id`,
    [organizationId],
  )
}

/**
 * Whether the address is a member's. It takes one statement, whether or not the address has an account, so that its
 * duration does not reveal accounts.
 */
export async function isMember(tx: Tx, organizationId: OrganizationId, email: string): Promise<boolean> {
  const rows = await tx.query(
    'select from member m join person p on p.id = m.person_id where m.organization_id = $1 and p.email = $2',
    [organizationId, email],
  )
  return rows.length > 0
}

/** Finds a member and their role, which cannot change while the caller holds the organization's lock. */
export async function findMember(
  db: Queryable,
  organizationId: OrganizationId,
  personId: string,
): Promise<{ personId: PersonId; email: string; role: MemberRole; keyId: KeyId } | null> {
  const [row] = await db.query<{ personId: PersonId; email: string; role: MemberRole; keyId: KeyId }>(
    `select m.person_id as "personId", p.email, m.role, m.key_id as "keyId"
    from member m join person p on p.id = m.person_id where m.organization_id = $1 and m.person_id = $2`,
    [organizationId, personId],
  )
  return row ?? null
}

export async function countOwners(tx: Tx, organizationId: OrganizationId): Promise<number> {
  return await countRows(tx, `member where organization_id = $1 and role = 'owner'`, [organizationId])
}

/** Counts the organizations that the person owns and that wait for approval. */
export async function countPending(tx: Tx, personId: PersonId): Promise<number> {
  const owned = `member m join organization o on o.id = m.organization_id
    where m.person_id = $1 and m.role = 'owner' and o.status = 'pending'`
  return await countRows(tx, owned, [personId])
}

export async function updateRole(
  tx: Tx,
  organizationId: OrganizationId,
  personId: PersonId,
  role: MemberRole,
): Promise<void> {
  await tx.query('update member set role = $3 where organization_id = $1 and person_id = $2', [
    organizationId,
    personId,
    role,
  ])
}

/** Removes the member. Their sessions continue without this organization. */
export async function deleteMember(
  tx: Tx,
  organizationId: OrganizationId,
  personId: PersonId,
): Promise<void> {
  await tx.query('delete from member where organization_id = $1 and person_id = $2', [
    organizationId,
    personId,
  ])
  await tx.query(
    'update session set organization_id = null where person_id = $2 and organization_id = $1 and ended_at is null',
    [organizationId, personId],
  )
}
