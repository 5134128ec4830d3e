// Keys, webhooks and invitations that one person made for an organization and that still work.
import type { KeyId, OrganizationId, WebhookId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'
import type { InvitationRow } from '../people/invitations.ts'

/** The maker, the organization and the time. Expired keys and invitations do not count. */
interface Made {
  organizationId: OrganizationId
  personId: string
  at: Date
}

type MadeKey = { id: KeyId; name: string; createdAt: Date; expiresAt: Date | null }
type MadeWebhook = { id: WebhookId; url: string; createdAt: Date }
type MadeInvitation = Pick<InvitationRow, 'id' | 'email' | 'role' | 'createdAt' | 'expiresAt'>

/** $1 is the person, $2 the time. */
export const madeKeys = `k.made_by = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > $2)`
/** $1 is the person. */
export const madeWebhooks = `w.made_by = $1 and w.status = 'active'`
/** $1 is the person, $2 the time. */
export const madeInvitations = 'i.invited_by = $1 and i.expires_at > $2'

/** Lists the keys, oldest first. */
export async function listMadeKeys(
  db: Queryable,
  { organizationId, personId, at }: Made,
): Promise<MadeKey[]> {
  return await db.query<MadeKey>(
    `select k.id, k.name, k.created_at as "createdAt", k.expires_at as "expiresAt"
    from api_key k where ${madeKeys} and k.organization_id = $3 order by k.id`,
    [personId, at, organizationId],
  )
}

/** Lists the webhooks, oldest first. */
export async function listMadeWebhooks(
  db: Queryable,
  { organizationId, personId }: Made,
): Promise<MadeWebhook[]> {
  return await db.query<MadeWebhook>(
    `select w.id, w.url, w.created_at as "createdAt"
    from webhook w where ${madeWebhooks} and w.organization_id = $2 order by w.id`,
    [personId, organizationId],
  )
}

/** Lists the invitations, oldest first. */
export async function listMadeInvitations(
  db: Queryable,
  { organizationId, personId, at }: Made,
): Promise<MadeInvitation[]> {
  return await db.query<MadeInvitation>(
    `select i.id, i.email, i.role, i.created_at as "createdAt", i.expires_at as "expiresAt"
    from invitation i where ${madeInvitations} and i.organization_id = $3 order by i.id`,
    [personId, at, organizationId],
  )
}

/** An object that was ended, with its organization. */
type Ended<Row> = Row & { organizationId: OrganizationId }

/** Revokes the keys and returns them. Locks them in the order of their ids, so that two such calls cannot deadlock. */
export async function revokeKeys(
  tx: Tx,
  ids: readonly string[],
  at: Date,
): Promise<Ended<Pick<MadeKey, 'id' | 'name'>>[]> {
  return await tx.query(
    `update api_key set revoked_at = $2 where id = any(array(
      select k.id from api_key k where k.id = any($1::uuid[]) and k.revoked_at is null order by k.id for no key update))
    returning id, name, organization_id as "organizationId"`,
    [ids, at],
  )
}

/**
 * Disables the endpoints and returns them. Locks them in the order of their ids, as `Leases` does, so that they cannot
 * deadlock.
 */
export async function disableWebhooks(
  tx: Tx,
  ids: readonly string[],
  at: Date,
): Promise<Ended<Pick<MadeWebhook, 'id' | 'url'>>[]> {
  return await tx.query(
    `update webhook set status = 'disabled', updated_at = $2 where id = any(array(
      select w.id from webhook w where w.id = any($1::text[]) and w.status = 'active' order by w.id for no key update))
    returning id, url, organization_id as "organizationId"`,
    [ids, at],
  )
}

/** Deletes the invitations and returns them. */
export async function deleteInvitations(
  tx: Tx,
  ids: readonly string[],
): Promise<Ended<Pick<MadeInvitation, 'email'>>[]> {
  return await tx.query(
    'delete from invitation where id = any($1::uuid[]) returning email, organization_id as "organizationId"',
    [ids],
  )
}
