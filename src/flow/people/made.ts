// A member's keys, webhooks and invitations: listed, and ended when their role changes or their password is reset.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { OrganizationId, PersonId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'
import {
  deleteInvitations,
  disableWebhooks,
  listMadeInvitations,
  listMadeKeys,
  listMadeWebhooks,
  revokeKeys,
} from '../../store/accounts/made.ts'
import { findMember } from '../../store/people/members.ts'
import type { MemberRole } from '../../store/people/people.ts'
import { type Actor, type AuditedAction, recordActions } from '../audit.ts'
import type { MemberActing } from './invitations.ts'

/** The fate of keys, webhooks and invitations whose maker may no longer make them. */
export type MadeChoice = 'end' | 'keep'

/** The valid keys, active webhooks and open invitations of a member. Owners see anyone's, others their own. */
export async function readMade(
  { db, clock }: { db: Queryable; clock: Clock },
  by: { organizationId: OrganizationId; personId: PersonId; role: MemberRole },
  personId: string,
) {
  if (by.role !== 'owner' && by.personId !== personId) throw new ServiceError('not_an_owner')
  const { organizationId } = by
  if (!(await findMember(db, organizationId, personId)))
    throw new ServiceError('not_found', 'There is no such member.')
  const made = { organizationId, personId, at: clock.now() }
  const [keys, webhooks, invitations] = await Promise.all([
    listMadeKeys(db, made),
    listMadeWebhooks(db, made),
    listMadeInvitations(db, made),
  ])
  return { keys, webhooks, invitations }
}

/**
 * Ends what the person made and may not make in the next role. A viewer, or a person who leaves (null), loses keys, webhooks
 * and invitations; a member only invitations; an owner nothing. Writes an audit entry for each. The caller holds the
 * organization's lock, so nothing is made meanwhile.
 */
export async function endMade(
  tx: Tx,
  by: MemberActing,
  personId: PersonId,
  { nextRole, at }: { nextRole: MemberRole | null; at: Date },
): Promise<void> {
  if (nextRole === 'owner') return
  const made = { organizationId: by.organizationId, personId, at }
  const mayMake = nextRole === 'member'
  const ending = {
    invitations: idsOf(await listMadeInvitations(tx, made)),
    keys: mayMake ? [] : idsOf(await listMadeKeys(tx, made)),
    webhooks: mayMake ? [] : idsOf(await listMadeWebhooks(tx, made)),
  }
  await endThings(tx, { name: by.email, ip: by.ip }, ending, { at })
}

function idsOf(rows: readonly { id: string }[]): string[] {
  return rows.map(({ id }) => id)
}

/** Withdraws the invitations, revokes the keys and disables the webhooks with these ids. Writes an audit entry for each. */
export async function endThings(
  tx: Tx,
  actor: Actor,
  { invitations, keys, webhooks }: Record<'invitations' | 'keys' | 'webhooks', readonly string[]>,
  { at, detail = {} }: { at: Date; detail?: AuditedAction['detail'] },
): Promise<void> {
  const withdrawn = (await deleteInvitations(tx, invitations)).map(({ organizationId, email }) => ({
    organizationId,
    action: 'member.invitation_withdrawn' as const,
    subject: email,
    detail,
    at,
  }))
  const revoked = (await revokeKeys(tx, keys, at)).map(({ organizationId, id, name }) => ({
    organizationId,
    action: 'key.revoked' as const,
    subject: name,
    detail: { id, ...detail },
    at,
  }))
  const status = { from: 'active', to: 'disabled' }
  const disabled = (await disableWebhooks(tx, webhooks, at)).map(({ organizationId, id, url }) => ({
    organizationId,
    action: 'webhook.changed' as const,
    subject: id,
    detail: { url, status, ...detail },
    at,
  }))
  await recordActions(tx, actor, [...withdrawn, ...revoked, ...disabled])
}
