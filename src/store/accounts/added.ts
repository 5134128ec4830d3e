// Sign-in methods, keys, webhooks and invitations that a person added after their address was last proved.
import type { OrganizationId, PersonId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'
import { madeInvitations, madeKeys, madeWebhooks } from './made.ts'

export interface Added {
  /** `identity` for an identity: a person has at most one. */
  id: string
  kind: 'passkey' | 'identity' | 'key' | 'webhook' | 'invitation'
  /** The name of a passkey or key, the URL of a webhook, the address of an invitation; null for an identity. */
  name: string | null
  /** The organization in which it was made, whose name may not be unique; null for a sign-in method. */
  organization: { id: OrganizationId; name: string } | null
  addedAt: Date
}

const inOwnOrganization = (alias: string) => `join organization o on o.id = ${alias}.organization_id
    and o.status not in ('deleting', 'deleted')
  join member m on m.organization_id = o.id and m.person_id = $1`

const organization = `jsonb_build_object('id', o.id, 'name', o.name)`

/**
 * Lists what the person added since that proof: sign-in methods, and valid keys, active webhooks and open invitations in
 * the person's organizations. Oldest first.
 */
export async function findAdded(
  db: Queryable,
  { personId, at }: { personId: PersonId; at: Date },
): Promise<Added[]> {
  return await db.query<Added>(
    `with proof as (select coalesce(proved_at, confirmed_at) as at from person where id = $1)
    select k.id::text, 'passkey' as kind, k.name, null::jsonb as organization, k.created_at as "addedAt"
    from passkey k, proof where k.person_id = $1 and k.created_at > proof.at
    union all
    select 'identity', 'identity', null, null, p.oidc_linked_at
    from person p, proof where p.id = $1 and p.oidc_linked_at > proof.at
    union all
    select k.id::text, 'key', k.name, ${organization}, k.created_at
    from api_key k ${inOwnOrganization('k')}, proof where ${madeKeys} and k.created_at > proof.at
    union all
    select w.id, 'webhook', w.url, ${organization}, w.created_at
    from webhook w ${inOwnOrganization('w')}, proof where ${madeWebhooks} and w.created_at > proof.at
    union all
    select i.id::text, 'invitation', i.email, ${organization}, i.created_at
    from invitation i ${inOwnOrganization('i')}, proof where ${madeInvitations} and i.created_at > proof.at
    order by "addedAt", id`,
    [personId, at],
  )
}

/** Removes the passkeys with these ids, and the identity if `identity` is one of them. */
export async function removeAddedWays(tx: Tx, id: PersonId, ids: readonly string[]): Promise<void> {
  await tx.query('delete from passkey where person_id = $1 and id::text = any($2)', [id, ids])
  await tx.query(
    `update person set oidc_issuer = null, oidc_subject = null, oidc_linked_at = null
    where id = $1 and 'identity' = any($2)`,
    [id, ids],
  )
}
