// Invitations: an owner names an address and a role. Anyone who reads that address's mail may accept.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { newUuid, type OrganizationId, type PersonId, type SessionId } from '../../base/ids.ts'
import { networkOf } from '../../base/ip-address.ts'
import { sameAddressKey } from '../../mail/address.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import { lockOrganization } from '../../store/accounts/organizations.ts'
import {
  deleteInvitation,
  findInvitation,
  type InvitationRow,
  listInvitations,
  putInvitation,
  takeInvitation,
} from '../../store/people/invitations.ts'
import { findMember, isMember } from '../../store/people/members.ts'
import {
  findPersonByEmail,
  insertPerson,
  type MemberRole,
  type PersonRow,
} from '../../store/people/people.ts'
import {
  confirmPerson,
  holdPerson,
  updatePassword,
  updatePersonName,
} from '../../store/people/person-credentials.ts'
import { deleteTokens } from '../../store/people/person-tokens.ts'
import { recordAction } from '../audit.ts'
import { requireName } from '../require-name.ts'
import { requireLiveSession } from '../require-still-changing.ts'
import type { Guard } from './guard.ts'
import type { LetterLimits } from './letter-limits.ts'
import { invitationLetter } from './letters.ts'
import type { Passwords } from './passwords.ts'
import type { Post } from './post.ts'
import { addMember } from './sessions.ts'
import type { PageAddress } from './sign-up.ts'
import { hashToken, newToken } from './tokens.ts'

type Deps = { db: Db; clock: Clock }

const invitationMs = 7 * 86_400_000
const maxInvitations = 100
const minPassword = 10

/** The member who changes an organization, and the IP address of the request. */
export interface MemberActing {
  organizationId: OrganizationId
  organizationName: string
  personId: PersonId
  sessionId: SessionId
  email: string
  ip: string
}

/** Invites the address and mails the link. Replaces an earlier invitation for the address. */
export async function invite(
  { db, clock, post, guard, letterLimits }: Deps & { post: Post; guard: Guard; letterLimits: LetterLimits },
  by: MemberActing,
  { email: given, role }: { email: string; role: MemberRole },
  pages: PageAddress,
): Promise<InvitationRow> {
  const email = sameAddressKey(given)
  const at = clock.now()
  const { token, hash } = newToken()
  const row: InvitationRow = {
    id: newUuid(),
    organizationId: by.organizationId,
    email,
    role,
    invitedBy: by.personId,
    createdAt: at,
    expiresAt: new Date(at.getTime() + invitationMs),
  }
  await db.transaction(async (tx) => {
    if ((await lockForMember(tx, by)) !== 'owner') throw new ServiceError('not_an_owner')
    await requireRoom(tx, row)
    // In the transaction, so that a letter that is not sent does not count.
    await letterLimits.countInvitation(tx, by)
    if (!(await guard.mayWrite('invite', email, tx)))
      throw new ServiceError(
        'too_many_attempts',
        'This address has already received several emails. Try again later.',
        300,
      )
    await putInvitation(tx, row, hash)
    const entry = { action: 'member.invited', subject: email, detail: { role }, at } as const
    await recordAction(tx, by.organizationId, { name: by.email, ip: by.ip }, entry)
  })
  const letter = { organizationName: by.organizationName, invitedBy: by.email, role }
  await post.send(email, invitationLetter(letter, `${pages}/invitation#${token}`))
  return row
}

/**
 * Locks the organization and returns the member's role, or null if they were removed. Refuses an ended session. Security:
 * nodes cache a role for a second. In that time a removed or demoted owner could invite somebody or promote themselves.
 */
export async function lockForMember(
  tx: Tx,
  { organizationId, personId, sessionId }: MemberActing,
): Promise<MemberRole | null> {
  await lockOrganization(tx, organizationId)
  await holdPerson(tx, personId)
  await requireLiveSession(tx, sessionId)
  return (await findMember(tx, organizationId, personId))?.role ?? null
}

async function requireRoom(tx: Tx, { organizationId, email, createdAt }: InvitationRow): Promise<void> {
  if (await isMember(tx, organizationId, email))
    throw new ServiceError('address_taken', `${email} is already a member.`)
  const pending = (await listInvitations(tx, organizationId, createdAt)).filter((row) => row.email !== email)
  if (pending.length >= maxInvitations)
    throw new ServiceError(
      'limit_reached',
      `The organization has ${pending.length} open invitations, which is the limit. Withdraw one first.`,
    )
}

export async function withdrawInvitation({ db, clock }: Deps, by: MemberActing, id: string): Promise<void> {
  await db.transaction(async (tx) => {
    const row = await deleteInvitation(tx, by.organizationId, id)
    if (!row) throw new ServiceError('not_found', 'There is no such invitation.')
    const entry = { action: 'member.invitation_withdrawn', subject: row.email, at: clock.now() } as const
    await recordAction(tx, by.organizationId, { name: by.email, ip: by.ip }, entry)
  })
}

/** The content of the invitation. `knownPerson`: the address has an account, so the person must sign in to accept. */
export async function previewInvitation(
  { db, clock }: Deps,
  token: string,
): Promise<{ organizationName: string; email: string; role: MemberRole; knownPerson: boolean }> {
  const { organizationName, email, role } = await requireInvitation({ db, clock }, token)
  const person = await findPersonByEmail(db, email)
  return { organizationName, email, role, knownPerson: isSettled(person) }
}

async function requireInvitation({ db, clock }: Deps, token: string) {
  const hash = hashToken(token)
  const invitation = hash && (await findInvitation(db, hash, clock.now()))
  if (!hash || !invitation) throw new ServiceError('link_expired')
  return { ...invitation, hash }
}

/** An address that is not proved does not belong to anyone. */
function isSettled(person: PersonRow | null): person is PersonRow & { confirmedAt: Date } {
  return person !== null && person.confirmedAt !== null
}

interface Joined {
  personId: PersonId
  organizationId: OrganizationId
}

interface Acceptance {
  token: string
  name?: string
  password?: string
}

/**
 * Makes the holder of the link a member. For a new person the link proves the address, and they give a name and a password.
 * A person with an account must be signed in or give its password. So a forwarded mail does not give others access to the
 * account.
 */
export async function acceptInvitation(
  deps: Deps & { guard: Guard; passwords: Passwords },
  given: Acceptance,
  { ip, signedInAs }: { ip: string; signedInAs: PersonId | null },
): Promise<Joined> {
  const { db, clock, guard, passwords } = deps
  const { hash, email } = await requireInvitation(deps, given.token)
  const known = await findPersonByEmail(db, email)
  if (isSettled(known)) {
    if (known.id !== signedInAs) await requirePassword(deps, known, given.password, ip)
    return await db.transaction((tx) => join(tx, { hash, person: known, ip, at: clock.now() }))
  }
  const { password } = given
  if (!given.name || !password) throw new ServiceError('invalid_request', '/name and /password are required')
  if (password.length < minPassword)
    throw new ServiceError('invalid_request', `/password must be ${minPassword} to 200 characters long`)
  const name = requireName(given.name)
  await guard.admitNetwork(ip)
  const passwordHash = await passwords.hashOnce(hash, networkOf(ip), password)
  const joined = await db.transaction(async (tx) => {
    const at = clock.now()
    const person = await settle(tx, { email, name, passwordHash, at })
    return await join(tx, { hash, person, ip, at })
  })
  await guard.passedFrom(ip)
  return joined
}

async function requirePassword(
  { guard, passwords }: { guard: Guard; passwords: Passwords },
  { email, passwordHash }: PersonRow,
  password: string | undefined,
  ip: string,
): Promise<void> {
  if (password === undefined || passwordHash === null)
    throw new ServiceError(
      'sign_in_failed',
      'This address already has an account. Sign in, then open the link again.',
    )
  await guard.admit(email, ip)
  if (!(await passwords.isRight(networkOf(ip), password, passwordHash)))
    throw new ServiceError('sign_in_failed')
  await guard.passed(email, ip)
}

/** The person, with the address now proved. Overwrites an earlier unproved sign-up, which may be a stranger's. */
async function settle(
  tx: Tx,
  { email, name, passwordHash, at }: { email: string; name: string; passwordHash: string; at: Date },
): Promise<PersonRow> {
  const found = await findPersonByEmail(tx, email)
  if (isSettled(found))
    throw new ServiceError('sign_in_failed', 'This address already has an account. Sign in first.')
  const row = { email, name, passwordHash, confirmedAt: at, createdAt: at }
  if (!found) {
    const person = { ...row, id: newUuid<PersonId>() }
    await insertPerson(tx, person)
    return person
  }
  await updatePassword(tx, found.id, passwordHash)
  await updatePersonName(tx, found.id, name)
  await confirmPerson(tx, found.id, at)
  await deleteTokens(tx, found.id, 'confirm')
  return { ...row, id: found.id }
}

async function join(
  tx: Tx,
  { hash, person, ip, at }: { hash: Buffer; person: PersonRow; ip: string; at: Date },
): Promise<Joined> {
  const invitation = await takeInvitation(tx, hash, at)
  if (!invitation) throw new ServiceError('link_expired')
  const { organizationId, role } = invitation
  const organization = await lockOrganization(tx, organizationId)
  if (!organization || organization.status === 'deleting') throw new ServiceError('link_expired')
  if (organization.status !== 'active') throw new ServiceError('organization_inactive')
  const joined = { personId: person.id, organizationId }
  if (await findMember(tx, organizationId, person.id)) return joined
  await addMember(tx, { organizationId, personId: person.id, email: person.email, role, at })
  const entry = { action: 'member.joined', subject: person.email, detail: { role }, at } as const
  await recordAction(tx, organizationId, { name: person.email, ip }, entry)
  return joined
}
