// What one person made for an organization and still works: keys, endpoints and invitations.
import type { KeyId, OrganizationId, WebhookId } from '../base/ids.ts'
import type { Queryable, Tx } from '../postgres/db.ts'
import type { InvitationRow } from './invitations.ts'

/** Whose, and when: expired keys and invitations do not count. */
interface Made {
  organizationId: OrganizationId
  personId: string
  at: Date
}

type MadeKey = { id: KeyId; name: string; createdAt: Date; expiresAt: Date | null }
type MadeWebhook = { id: WebhookId; url: string; createdAt: Date }
type MadeInvitation = Pick<InvitationRow, 'id' | 'email' | 'role' | 'createdAt' | 'expiresAt'>

const madeKeys = `k.organization_id = $1 and k.made_by = $2 and k.revoked_at is null
  and (k.expires_at is null or k.expires_at > $3)`
const madeWebhooks = `w.organization_id = $1 and w.made_by = $2 and w.status = 'active'`
const madeInvitations = 'i.organization_id = $1 and i.invited_by = $2 and i.expires_at > $3'

/** The oldest first. */
export async function listMadeKeys(
  db: Queryable,
  { organizationId, personId, at }: Made,
): Promise<MadeKey[]> {
  return await db.query<MadeKey>(
    `select k.id, k.name, k.created_at as "createdAt", k.expires_at as "expiresAt"
    from api_key k where ${madeKeys} order by k.id`,
    [organizationId, personId, at],
  )
}

/** The oldest first. */
export async function listMadeWebhooks(
  db: Queryable,
  { organizationId, personId }: Made,
): Promise<MadeWebhook[]> {
  return await db.query<MadeWebhook>(
    `select w.id, w.url, w.created_at as "createdAt" from webhook w where ${madeWebhooks} order by w.id`,
    [organizationId, personId],
  )
}

/** The oldest first. */
export async function listMadeInvitations(
  db: Queryable,
  { organizationId, personId, at }: Made,
): Promise<MadeInvitation[]> {
  return await db.query<MadeInvitation>(
    `select i.id, i.email, i.role, i.created_at as "createdAt", i.expires_at as "expiresAt"
    from invitation i where ${madeInvitations} order by i.id`,
    [organizationId, personId, at],
  )
}

/** Revokes the keys and returns them. Locks them by id, as leases lock endpoints: other orders deadlock. */
export async function revokeMadeKeys(
  tx: Tx,
  { organizationId, personId, at }: Made,
): Promise<Pick<MadeKey, 'id' | 'name'>[]> {
  return await tx.query(
    `update api_key set revoked_at = $3
    where id = any(array(select k.id from api_key k where ${madeKeys} order by k.id for no key update)) returning id, name`,
    [organizationId, personId, at],
  )
}

/** Disables the endpoints and returns them, locked in the same order. */
export async function disableMadeWebhooks(
  tx: Tx,
  { organizationId, personId, at }: Made,
): Promise<Pick<MadeWebhook, 'id' | 'url'>[]> {
  return await tx.query(
    `update webhook set status = 'disabled', updated_at = $3
    where id = any(array(select w.id from webhook w where ${madeWebhooks} order by w.id for no key update)) returning id, url`,
    [organizationId, personId, at],
  )
}

/** Deletes the invitations and returns them. */
export async function deleteMadeInvitations(
  tx: Tx,
  { organizationId, personId, at }: Made,
): Promise<Pick<MadeInvitation, 'email'>[]> {
  return await tx.query(`delete from invitation i where ${madeInvitations} returning i.email`, [
    organizationId,
    personId,
    at,
  ])
}
