// What the audit log says: deeds, in the transaction that does them, so that none stands there that was not done.
import type { OrganizationId, PersonId } from '../base/ids.ts'
import type { Tx } from '../postgres/db.ts'
import { insertAuditEntry, listOrganizationsOf } from '../store/audit.ts'
import type { Caller } from './caller.ts'

/** Who does it, and where their request came from. */
export interface Actor {
  name: string
  ip: string | null
}

/** Who runs the service, at the shell of its machine. */
export const operator: Actor = { name: 'operator', ip: null }

/** Every action that an entry can name. */
export const actions = [
  'access.asked',
  'organization.created',
  'organization.renamed',
  'organization.approved',
  'organization.suspended',
  'organization.limits_changed',
  'organization.deleted',
  'member.invited',
  'member.invitation_withdrawn',
  'member.joined',
  'member.role_changed',
  'member.removed',
  'key.created',
  'key.rotated',
  'key.revoked',
  'person.renamed',
  'session.opened',
  'session.ended',
  'sessions.ended',
  'password.changed',
  'passkey.added',
  'passkey.removed',
  'identity.linked',
  'domain.registered',
  'domain.deleted',
  'domain.keys_rotated',
  'inbox.created',
  'inbox.renamed',
  'inbox.deleted',
  'message.deleted',
  'submission.cancelled',
  'webhook.created',
  'webhook.changed',
  'webhook.deleted',
  'webhook.secret_rotated',
  'webhook.call_replayed',
  'suppression.added',
  'suppression.removed',
  'desk.opened',
  'queue.paused',
  'queue.resumed',
  'queue.flushed',
  'queue.cancelled',
  'secret.rotated',
  'secret.replaced',
  'copy.released',
] as const

export type Action = (typeof actions)[number]

/** What was done: `subject` is what it was done to, as people know it. */
export interface Deed {
  action: Action
  subject: string
  detail?: Record<string, unknown>
  at: Date
}

/** Who calls: a person by their address, a key by its name, which could be anything and says that it is one. */
export function actorOf({ name, personId, ip }: Caller): Actor {
  return { name: personId ? name : `${name} (key)`, ip: ip ?? null }
}

export async function recordDeed(
  tx: Tx,
  organizationId: OrganizationId | null,
  { name: actor, ip }: Actor,
  { detail = {}, ...deed }: Deed,
): Promise<void> {
  await insertAuditEntry(tx, organizationId, { ...deed, actor, ip, detail })
}

/** What a person did to their own account concerns each organization that they are in; where there is none, the deployment. */
export async function recordOwnDeed(
  tx: Tx,
  person: { id: PersonId; email: string },
  ip: string,
  deed: Omit<Deed, 'subject'> & { subject?: string },
): Promise<void> {
  const organizations = await listOrganizationsOf(tx, person.id)
  const actor = { name: person.email, ip }
  for (const organizationId of organizations.length > 0 ? organizations : [null])
    await recordDeed(tx, organizationId, actor, { subject: person.email, ...deed })
}
