// Organizations that people request and rename. Only the operator approves them.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { newUuid, type OrganizationId, type PersonId, type SessionId } from '../../base/ids.ts'
import type { Db } from '../../postgres/db.ts'
import { insertOrganization, type Limits, renameOrganization } from '../../store/accounts/organizations.ts'
import { countPending } from '../../store/people/members.ts'
import { lockPerson } from '../../store/people/person-credentials.ts'
import { chooseOrganization } from '../../store/people/sessions.ts'
import { recordAction } from '../audit.ts'
import { untilKnownEverywhere } from '../known-everywhere.ts'
import { requireName } from '../require-name.ts'
import type { MemberActing } from './invitations.ts'
import type { LetterLimits } from './letter-limits.ts'
import { addMember } from './sessions.ts'

type Deps = { db: Db; clock: Clock }

/** The limit of organizations of one person that wait for approval. */
const maxPending = 3

/**
 * Makes an organization that waits for approval, with the person as its owner. The session switches to it. A letter to the
 * operator becomes due, unless the person's network has reached its limit.
 */
export async function askAccess(
  {
    db,
    clock,
    defaultLimits: limits,
    letterLimits,
  }: Deps & { defaultLimits: Limits; letterLimits: LetterLimits },
  by: { personId: PersonId; sessionId: SessionId; email: string; ip: string },
  givenName: string,
): Promise<void> {
  const name = requireName(givenName)
  const { personId, email, ip } = by
  await db.transaction(async (tx) => {
    // Locked, so that parallel requests are counted one by one.
    await lockPerson(tx, personId)
    const pending = await countPending(tx, personId)
    if (pending >= maxPending)
      throw new ServiceError(
        'limit_reached',
        `${pending} of your organizations are already waiting for approval. Wait for the operator's decision.`,
      )
    const at = clock.now()
    const id = newUuid<OrganizationId>()
    const letterDue = (await letterLimits.admitRequest(tx, ip)) ? 'request' : null
    await insertOrganization(tx, {
      id,
      name,
      status: 'pending',
      limits,
      letterDue,
      createdAt: at,
      updatedAt: at,
    })
    await addMember(tx, { organizationId: id, personId, email, role: 'owner', at })
    await chooseOrganization(tx, by.sessionId, id)
    await recordAction(tx, id, { name: email, ip }, { action: 'access.asked', subject: name, at })
  })
  await untilKnownEverywhere()
}

/** When it returns, every node knows. */
export async function rename({ db, clock }: Deps, by: MemberActing, givenName: string): Promise<void> {
  const name = requireName(givenName)
  await db.transaction(async (tx) => {
    const at = clock.now()
    const row = await renameOrganization(tx, by.organizationId, name, at)
    if (!row) throw new ServiceError('not_found', 'There is no such organization.')
    const entry = {
      action: 'organization.renamed',
      subject: name,
      detail: { from: by.organizationName },
      at,
    } as const
    await recordAction(tx, by.organizationId, { name: by.email, ip: by.ip }, entry)
  })
  await untilKnownEverywhere()
}
