// Sessions: opened with a new secret each time, known for a second, and what each of them stands for.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { type KeyId, newUuid, type OrganizationId, type PersonId, type SessionId } from '../../base/ids.ts'
import { KnownFor } from '../../base/known-for.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import { type CallerRow, findMemberCallers, insertKey } from '../../store/accounts/keys.ts'
import {
  findPerson,
  insertMember,
  listMemberships,
  type MemberRole,
  type MembershipRow,
} from '../../store/people/people.ts'
import {
  chooseOrganization,
  endSession,
  endSessionBehind,
  endSessions,
  findSessions,
  insertSession,
  type SessionRow,
  touchSessions,
} from '../../store/people/sessions.ts'
import { recordOwnDeed } from '../audit.ts'
import type { Caller } from '../caller.ts'
import { knownForMs, untilKnownEverywhere } from '../known-everywhere.ts'
import { hashToken, newToken } from './tokens.ts'

/** A session that nobody has used for so long has ended. */
export const idleMs = 30 * 86_400_000
/** A session in use is written down this often. */
const touchMs = 5 * 60_000
const maxKnown = 10_000
const maxUserAgent = 300

/** Who is signed in, and for which organization. */
export interface SignedIn {
  session: SessionRow
  person: { id: PersonId; email: string; name: string; hasPassword: boolean }
  organizations: MembershipRow[]
  /** The one of them that requests are for; null where the person is in none. */
  organization: MembershipRow | null
  /** What its requests are judged and counted by; null without an organization. */
  caller: Caller | null
}

type Deps = { db: Db; clock: Clock }

/** Who signs in, and from where; without an organization for the oldest of theirs. */
export interface Entering {
  personId: PersonId
  organizationId?: OrganizationId
  ip: string
  userAgent: string
  way: SignInWay
}

/** What a person proved who they are with. */
export type SignInWay = 'password' | 'passkey' | 'identity' | 'link' | 'confirmation' | 'invitation' | 'reset'

/** Opens a session; the token is its cookie, and is kept nowhere. */
export async function openSession(
  tx: Tx,
  { personId, organizationId, ip, userAgent, way, at }: Entering & { at: Date },
): Promise<{ token: string; sessionId: SessionId }> {
  const { token, hash } = newToken()
  const [first] = await listMemberships(tx, [personId])
  const row = {
    id: newUuid<SessionId>(),
    personId,
    ip,
    organizationId: organizationId ?? first?.id ?? null,
    userAgent: userAgent.slice(0, maxUserAgent),
    createdAt: at,
    lastUsedAt: at,
  }
  await insertSession(tx, row, hash)
  const person = await findPerson(tx, personId)
  if (person)
    await recordOwnDeed(tx, person, ip, {
      action: 'session.opened',
      detail: { way, userAgent: row.userAgent },
      at,
    })
  return { token, sessionId: row.id }
}

/** The same, in a transaction of its own; the session behind the `former` token ends in it. */
export async function startSession(
  { db, clock }: Deps,
  { former = null, ...who }: Entering & { former?: string | null },
): Promise<{ token: string; sessionId: SessionId }> {
  const hash = former === null ? null : hashToken(former)
  return await db.transaction(async (tx) => {
    const at = clock.now()
    if (hash) await endSessionBehind(tx, hash, at)
    return await openSession(tx, { ...who, at })
  })
}

/** Makes the person a member, with the key that its requests are judged and counted by. */
export async function addMember(
  tx: Tx,
  member: { organizationId: OrganizationId; personId: PersonId; email: string; role: MemberRole; at: Date },
): Promise<void> {
  const { organizationId, personId, email, role, at } = member
  const keyId = newUuid<KeyId>()
  const key = {
    id: keyId,
    organizationId,
    personId,
    name: email,
    kind: 'dashboard' as const,
    scopes: ['*'],
    inboxIds: null,
    allowedIps: null,
    sendMode: 'new_and_reply' as const,
    allowedRecipientDomains: null,
    expiresAt: null,
    requestsPerMinute: null,
    createdAt: at,
  }
  // Of a secret that nobody has seen.
  await insertKey(tx, key, newToken().hash)
  await insertMember(tx, { organizationId, personId, role, keyId, createdAt: at })
}

/** Knows the sessions of the last second. */
export class Sessions {
  readonly #deps: Deps
  readonly #known: KnownFor<string, SignedIn>

  constructor(deps: Deps) {
    this.#deps = deps
    this.#known = new KnownFor({
      name: 'find sessions',
      clock: deps.clock,
      ms: knownForMs,
      max: maxKnown,
      load: (digests) => this.#load(digests),
    })
  }

  /** Who is behind the token, or null: unknown, ended, or idle for too long. */
  async find(token: string): Promise<SignedIn | null> {
    const hash = hashToken(token)
    return hash && (await this.#known.find(hash.toString('latin1')))
  }

  async #load(digests: string[]): Promise<Map<string, SignedIn>> {
    const { db, clock } = this.#deps
    const nowMs = clock.nowMs()
    const hashes = digests.map((digest) => Buffer.from(digest, 'latin1'))
    const found = await findSessions(db, hashes, new Date(nowMs - idleMs))
    const worn = found.filter(({ lastUsedAt }) => lastUsedAt.getTime() < nowMs - touchMs).map(({ id }) => id)
    if (worn.length > 0) await touchSessions(db.writer, worn, clock.now())
    const memberships = await listMemberships(db, [...new Set(found.map(({ personId }) => personId))])
    const callers = await findMemberCallers(
      db,
      memberships.map(({ keyId }) => keyId),
    )
    return new Map(
      found.map(({ hash, person, ...session }) => {
        const own = memberships.filter(({ personId }) => personId === session.personId)
        return [hash.toString('latin1'), standFor(session, person, own, callers)]
      }),
    )
  }
}

/** An organization that the person has left is left for the oldest of the others. */
function standFor(
  session: SessionRow,
  person: Omit<SignedIn['person'], 'id'>,
  organizations: MembershipRow[],
  callers: readonly CallerRow[],
): SignedIn {
  const chosen = organizations.find(({ id }) => id === session.organizationId)
  const organization = chosen ?? organizations[0] ?? null
  const caller = callers.find(({ id }) => id === organization?.keyId)
  return {
    session,
    organizations,
    organization,
    person: { id: session.personId, ...person },
    caller: caller ? { ...caller, sessionId: session.id } : null,
  }
}

/** Has the session's requests be for another organization of the person's; once it returns, every node knows. */
export async function switchOrganization(
  { db }: Pick<Deps, 'db'>,
  { session, organizations }: SignedIn,
  organizationId: string,
): Promise<void> {
  const chosen = organizations.find(({ id }) => id === organizationId)
  if (!chosen) throw new ServiceError('not_found', 'You are in no such organization.')
  await chooseOrganization(db.writer, session.id, chosen.id)
  await untilKnownEverywhere()
}

/** Ends a session of the person; once it returns, no node takes it any more. */
export async function signOut(
  { db, clock }: Deps,
  person: SignedIn['person'],
  sessionId: string,
  ip: string,
): Promise<void> {
  await db.transaction(async (tx) => {
    const at = clock.now()
    if (!(await endSession(tx, person.id, sessionId, at)))
      throw new ServiceError('not_found', 'There is no such session.')
    await recordOwnDeed(tx, person, ip, { action: 'session.ended', at })
  })
  await untilKnownEverywhere()
}

/** Ends all others of the person; once it returns, no node takes them any more. */
export async function signOutElsewhere(
  { db, clock }: Deps,
  { session, person }: SignedIn,
  ip: string,
): Promise<void> {
  await db.transaction(async (tx) => {
    const at = clock.now()
    await endSessions(tx, person.id, session.id, at)
    await recordOwnDeed(tx, person, ip, { action: 'sessions.ended', at })
  })
  await untilKnownEverywhere()
}
