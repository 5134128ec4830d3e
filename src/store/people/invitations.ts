// Invitations into an organization, one per address, by the digest of the mailed secret.
import type { OrganizationId, PersonId } from '../../base/ids.ts'
import { Arguments } from '../../postgres/arguments.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'
import type { MemberRole } from './people.ts'

export interface InvitationRow {
  id: string
  organizationId: OrganizationId
  /** In the form in which people's addresses are compared. */
  email: string
  role: MemberRole
  invitedBy: PersonId | null
  createdAt: Date
  expiresAt: Date
}

const columns = `i.id, i.organization_id as "organizationId", i.email, i.role, i.invited_by as "invitedBy",
  i.created_at as "createdAt", i.expires_at as "expiresAt"`

/** Adds the invitation. It replaces an earlier one for the address, whose link then stops working. */
export async function putInvitation(tx: Tx, row: InvitationRow, hash: Buffer): Promise<void> {
  await tx.query('delete from invitation where organization_id = $1 and email = $2', [
    row.organizationId,
    row.email,
  ])
  const named = new Arguments({
    id: row.id,
    organization_id: row.organizationId,
    email: row.email,
    role: row.role,
    invited_by: row.invitedBy,
    token_hash: hash,
    created_at: row.createdAt,
    expires_at: row.expiresAt,
  })
  await tx.query(named.insertInto('invitation'), named.values)
}

/** Lists invitations that can still be accepted, newest first. */
export async function listInvitations(
  db: Queryable,
  organizationId: OrganizationId,
  at: Date,
): Promise<InvitationRow[]> {
  return await db.query<InvitationRow>(
    `select ${columns} from invitation i where i.organization_id = $1 and i.expires_at > $2 order by i.id desc`,
    [organizationId, at],
  )
}

/** Finds the invitation with this digest while it can be accepted, with its organization's name. */
export async function findInvitation(
  db: Queryable,
  hash: Buffer,
  at: Date,
): Promise<(InvitationRow & { organizationName: string }) | null> {
  const [row] = await db.query<InvitationRow & { organizationName: string }>(
    `select ${columns}, o.name as "organizationName" from invitation i join organization o on o.id = i.organization_id
    where i.token_hash = $1 and i.expires_at > $2 and o.status not in ('deleting', 'deleted')`,
    [hash, at],
  )
  return row ?? null
}

/** Whether an invitation for the address is open. */
export async function isInvited(db: Queryable, email: string, at: Date): Promise<boolean> {
  const rows = await db.query('select from invitation where email = $1 and expires_at > $2 limit 1', [
    email,
    at,
  ])
  return rows.length > 0
}

/** Takes the invitation and deletes it; null if it was already taken or has expired. */
export async function takeInvitation(tx: Tx, hash: Buffer, at: Date): Promise<InvitationRow | null> {
  const [row] = await tx.query<InvitationRow>(
    `delete from invitation i where i.token_hash = $1 and i.expires_at > $2 returning ${columns}`,
    [hash, at],
  )
  return row ?? null
}

/** Withdraws one of the organization's invitations; null if there is none. */
export async function deleteInvitation(
  tx: Tx,
  organizationId: OrganizationId,
  id: string,
): Promise<InvitationRow | null> {
  const [row] = await tx.query<InvitationRow>(
    `delete from invitation i where i.organization_id = $1 and i.id = $2 returning ${columns}`,
    [organizationId, id],
  )
  return row ?? null
}
