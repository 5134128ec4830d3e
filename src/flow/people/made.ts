// What a member made and still works: listed, and ended once their role does not permit to make it.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { OrganizationId, PersonId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'
import {
  deleteMadeInvitations,
  disableMadeWebhooks,
  listMadeInvitations,
  listMadeKeys,
  listMadeWebhooks,
  revokeMadeKeys,
} from '../../store/made.ts'
import { findMember } from '../../store/members.ts'
import type { MemberRole } from '../../store/people.ts'
import { type Deed, recordDeed } from '../audit.ts'
import type { MemberActing } from './invitations.ts'

/** What becomes of keys, webhooks and invitations whose maker may not make them any more. */
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
 * Ends what the person made and their next role may not make: for a viewer, and for one who goes (null), the keys, webhooks
 * and invitations; for a member the invitations; for an owner nothing. Writes an audit entry for each. The caller holds the
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
  const record = (deed: Omit<Deed, 'at'>) =>
    recordDeed(tx, by.organizationId, { name: by.email, ip: by.ip }, { ...deed, at })
  for (const { email } of await deleteMadeInvitations(tx, made))
    await record({ action: 'member.invitation_withdrawn', subject: email })
  if (nextRole === 'member') return
  for (const { id, name } of await revokeMadeKeys(tx, made))
    await record({ action: 'key.revoked', subject: name, detail: { id } })
  const status = { from: 'active', to: 'disabled' }
  for (const { id, url } of await disableMadeWebhooks(tx, made))
    await record({ action: 'webhook.changed', subject: id, detail: { url, status } })
}
