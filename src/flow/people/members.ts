// Members: role changes and removal. An organization always keeps an owner, even if several leave at the same moment.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { OrganizationId } from '../../base/ids.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import { revokeKey } from '../../store/accounts/keys.ts'
import { countOwners, deleteMember, findMember, updateRole } from '../../store/people/members.ts'
import type { MemberRole } from '../../store/people/people.ts'
import { recordAction } from '../audit.ts'
import { untilKnownEverywhere } from '../known-everywhere.ts'
import { lockForMember, type MemberActing } from './invitations.ts'
import { endMade, type MadeChoice } from './made.ts'

type Deps = { db: Db; clock: Clock }

/** Changes the role and ends what the new one may not make, unless `made` is `keep`. When it returns, every node knows. */
export async function changeRole(
  { db, clock }: Deps,
  by: MemberActing,
  personId: string,
  { role, made }: { role: MemberRole; made: MadeChoice },
): Promise<void> {
  await db.transaction(async (tx) => {
    if ((await lockForMember(tx, by)) !== 'owner') throw new ServiceError('not_an_owner')
    const member = await requireMember(tx, by.organizationId, personId)
    if (member.role === role) return
    if (member.role === 'owner') await requireAnotherOwner(tx, by.organizationId)
    await updateRole(tx, by.organizationId, member.personId, role)
    const at = clock.now()
    const detail = { from: member.role, to: role, ...keptDetail(made) }
    const entry = { action: 'member.role_changed', subject: member.email, detail, at } as const
    await recordAction(tx, by.organizationId, { name: by.email, ip: by.ip }, entry)
    if (made === 'end') await endMade(tx, by, member.personId, { nextRole: role, at })
  })
  await untilKnownEverywhere()
}

/**
 * Removes a member. Owners may remove anyone, others only themselves. Ends the key of their sessions in this organization,
 * and what they made here unless `made` is `keep`. Other organizations are unaffected. When it returns, every node knows.
 */
export async function removeMember(
  { db, clock }: Deps,
  by: MemberActing,
  personId: string,
  made: MadeChoice,
): Promise<void> {
  await db.transaction(async (tx) => {
    const role = await lockForMember(tx, by)
    if (role !== 'owner' && by.personId !== personId) throw new ServiceError('not_an_owner')
    const member = await requireMember(tx, by.organizationId, personId)
    if (member.role === 'owner') await requireAnotherOwner(tx, by.organizationId)
    await deleteMember(tx, by.organizationId, member.personId)
    const at = clock.now()
    await revokeKey(tx, member.keyId, at)
    const entry = { action: 'member.removed', subject: member.email, detail: keptDetail(made), at } as const
    await recordAction(tx, by.organizationId, { name: by.email, ip: by.ip }, entry)
    if (made === 'end') await endMade(tx, by, member.personId, { nextRole: null, at })
  })
  await untilKnownEverywhere()
}

/** Notes in the audit entry that the member's keys, webhooks and invitations were kept. */
function keptDetail(made: MadeChoice): { made?: 'kept' } {
  return made === 'keep' ? { made: 'kept' } : {}
}

async function requireMember(tx: Tx, organizationId: OrganizationId, personId: string) {
  const member = await findMember(tx, organizationId, personId)
  if (!member) throw new ServiceError('not_found', 'There is no such member.')
  return member
}

/** The caller holds the organization's lock, so if the last two owners leave at once, one must stay. */
async function requireAnotherOwner(tx: Tx, organizationId: OrganizationId): Promise<void> {
  if ((await countOwners(tx, organizationId)) < 2) throw new ServiceError('last_owner')
}
