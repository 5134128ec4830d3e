// The audit log. Each entry is written in the transaction of its action, so no entry reports an action that did not happen.
import type { OrganizationId, PersonId } from '../base/ids.ts'
import type { Tx } from '../postgres/db.ts'
import { insertAuditEntries, listOrganizationsOf } from '../store/accounts/audit.ts'
import type { Caller } from './caller.ts'

/** The person, key or operator that acts, and the IP address of their request. */
export interface Actor {
  name: string
  ip: string | null
}

/** The operator of the service, at the shell of its machine. */
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
  'domain.one_click_changed',
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

/** An audited action. `subject` names its object as people know it. */
export interface AuditedAction {
  action: Action
  subject: string
  detail?: Record<string, unknown>
  at: Date
}

/** The caller as an actor: a person by their address, a key by its name with a mark, as key names are free text. */
export function actorOf({ name, personId, ip }: Caller): Actor {
  return { name: personId ? name : `${name} (key)`, ip: ip ?? null }
}

export async function recordAction(
  tx: Tx,
  organizationId: OrganizationId | null,
  actor: Actor,
  entry: AuditedAction,
): Promise<void> {
  await recordActions(tx, actor, [{ ...entry, organizationId }])
}

/** Records the actions of one actor in one statement. */
export async function recordActions(
  tx: Tx,
  { name: actor, ip }: Actor,
  entries: readonly (AuditedAction & { organizationId: OrganizationId | null })[],
): Promise<void> {
  await insertAuditEntries(
    tx,
    entries.map(({ detail = {}, ...entry }) => ({ ...entry, actor, ip, detail })),
  )
}

/** An action on the person's own account, unless it names another subject. */
type OwnAction = Omit<AuditedAction, 'subject'> & { subject?: string }

export async function recordOwnAction(
  tx: Tx,
  person: { id: PersonId; email: string },
  ip: string,
  entry: OwnAction,
): Promise<void> {
  await recordOwnActions(tx, person, ip, [entry])
}

/** Records a person's actions on their own account for each of their organizations; without any, for the deployment. */
export async function recordOwnActions(
  tx: Tx,
  person: { id: PersonId; email: string },
  ip: string,
  entries: readonly OwnAction[],
): Promise<void> {
  const found = await listOrganizationsOf(tx, person.id)
  const organizations = found.length > 0 ? found : [null]
  const everywhere = entries.flatMap((entry) =>
    organizations.map((organizationId) => ({ subject: person.email, ...entry, organizationId })),
  )
  await recordActions(tx, { name: person.email, ip }, everywhere)
}
