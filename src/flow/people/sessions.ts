// Sessions: each opened with a new secret, cached for a second, and resolved to a person and an organization.
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
  endSessionByHash,
  endSessions,
  findSessions,
  insertSession,
  type SessionRow,
  touchSessions,
} from '../../store/people/sessions.ts'
import { recordOwnAction } from '../audit.ts'
import type { Caller } from '../caller.ts'
import { knownForMs, untilKnownEverywhere } from '../known-everywhere.ts'
import { hashToken, newToken } from './tokens.ts'

/** A session that is unused for this long has ended. */
export const idleMs = 30 * 86_400_000
/** How often the last use of an active session is written. */
const touchMs = 5 * 60_000
const maxKnown = 10_000
const maxUserAgent = 300

/** The signed-in person and the organization of their requests. */
export interface SignedIn {
  session: SessionRow
  person: { id: PersonId; email: string; name: string; hasPassword: boolean }
  organizations: MembershipRow[]
  /** The organization of the session's requests. Null if the person is in none. */
  organization: MembershipRow | null
  /** The caller whose rights and limits apply to its requests. Null without an organization. */
  caller: Caller | null
}

type Deps = { db: Db; clock: Clock }

/** A sign-in and its source. Default: the person's oldest organization. */
export interface Entering {
  personId: PersonId
  organizationId?: OrganizationId
  ip: string
  userAgent: string
  way: SignInWay
}

/** How a person proved their identity. */
export type SignInWay = 'password' | 'passkey' | 'identity' | 'link' | 'confirmation' | 'invitation' | 'reset'

/** Opens a session. The token is its cookie; only its digest is stored. */
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
    await recordOwnAction(tx, person, ip, {
      action: 'session.opened',
      detail: { way, userAgent: row.userAgent },
      at,
    })
  return { token, sessionId: row.id }
}

/** Opens a session in its own transaction, which also ends the session of the `former` token. */
export async function startSession(
  { db, clock }: Deps,
  { former = null, ...who }: Entering & { former?: string | null },
): Promise<{ token: string; sessionId: SessionId }> {
  const hash = former === null ? null : hashToken(former)
  return await db.transaction(async (tx) => {
    const at = clock.now()
    if (hash) await endSessionByHash(tx, hash, at)
    return await openSession(tx, { ...who, at })
  })
}

/** Makes the person a member, with the key whose rights and limits apply to their requests. */
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
    confirmNewRecipients: false,
    expiresAt: null,
    requestsPerMinute: null,
    createdAt: at,
  }
  // The key's secret is random and unknown to anyone.
  await insertKey(tx, key, newToken().hash)
  await insertMember(tx, { organizationId, personId, role, keyId, createdAt: at })
}

/** Caches the sessions of the last second. */
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

  /** The session and person of the token. Null if the token is unknown, ended, or idle for too long. */
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

/** If the person has left the session's organization, the oldest of the others takes over. */
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

/** Switches the session's requests to another of the person's organizations. When it returns, every node knows. */
export async function switchOrganization(
  { db }: Pick<Deps, 'db'>,
  { session, organizations }: SignedIn,
  organizationId: string,
): Promise<void> {
  const chosen = organizations.find(({ id }) => id === organizationId)
  if (!chosen) throw new ServiceError('not_found', 'You are not a member of such an organization.')
  await chooseOrganization(db.writer, session.id, chosen.id)
  await untilKnownEverywhere()
}

/** Ends a session of the person. When it returns, no node accepts it any more. */
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
    await recordOwnAction(tx, person, ip, { action: 'session.ended', at })
  })
  await untilKnownEverywhere()
}

/** Ends the person's other sessions. When it returns, no node accepts them any more. */
export async function signOutElsewhere(
  { db, clock }: Deps,
  { session, person }: SignedIn,
  ip: string,
): Promise<void> {
  await db.transaction(async (tx) => {
    const at = clock.now()
    await endSessions(tx, person.id, session.id, at)
    await recordOwnAction(tx, person, ip, { action: 'sessions.ended', at })
  })
  await untilKnownEverywhere()
}
