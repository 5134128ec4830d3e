// Keys that members make: scopes of the dashboard, up to 30 days (server keys: 365), never more than the organization has.
import { isIP } from 'node:net'
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { KeyId, OrganizationId, PersonId, SessionId } from '../../base/ids.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import { countLiveKeys, findUsedKey, type KeyRow, type UsedKeyRow } from '../../store/accounts/keys.ts'
import { lockOrganization, type OrganizationRow } from '../../store/accounts/organizations.ts'
import { findInbox } from '../../store/mailbox/inboxes.ts'
import type { Actor } from '../audit.ts'
import type { Scope } from '../caller.ts'
import { untilKnownEverywhere } from '../known-everywhere.ts'
import { requireStillChanging } from '../require-still-changing.ts'
import { addKey, type KeyInput, revoke } from './key.ts'

type Deps = { db: Db; clock: Clock }

/** The member who acts, with the key of their sessions. */
interface KeyMaker {
  organizationId: OrganizationId
  personId: PersonId
  keyId: KeyId
  sessionId: SessionId
  actor: Actor
}

/** The scopes that members of every organization can give a key. */
export const memberScopes = [
  ...(['mailbox:manage', 'mailbox:read', 'mailbox:send', 'domain:manage', 'webhook:manage'] as const),
  'delivery:read',
] satisfies Scope[]

/** The scopes that only server keys can have. The operator grants an organization server keys. */
export const serverScopes = ['delivery:send', 'validation:use'] as const satisfies Scope[]

const dayMs = 86_400_000
const longestDays = 30
export const longestServerDays = 365
/** The maximum of usable keys in one organization. */
const maxKeys = 500

/** The kinds of key that members make. Mail of kind `agent` is marked as automatic. `server` needs the operator's grant. */
export const memberKinds = ['agent', 'dashboard', 'server'] as const satisfies KeyRow['kind'][]

export interface MemberKeyInput extends Omit<KeyInput, 'kind' | 'expiresInMs'> {
  kind: (typeof memberKinds)[number]
  expiresInDays: number
}

/** Makes a key of an active organization. Only this answer holds the secret. */
export async function createMemberKey(
  { db, clock }: Deps,
  by: KeyMaker,
  { expiresInDays, ...input }: MemberKeyInput,
): Promise<{ key: KeyRow; secret: string }> {
  return await db.transaction(async (tx) => {
    const at = clock.now()
    const organization = await requireRoom(tx, by, at)
    requireKind(organization, { ...input, expiresInDays })
    await requireWithin(tx, organization, input)
    const key = { ...input, expiresInMs: expiresInDays * dayMs }
    return await addKey(tx, organization, key, { actor: by.actor, at, madeBy: by.personId })
  })
}

/**
 * Makes another key with the kind, scopes, restrictions and lifetime of this one. The old key stays valid until it is
 * revoked. The caller becomes the maker of the new key.
 */
export async function rotateKey(
  { db, clock }: Deps,
  by: KeyMaker,
  id: string,
  name: string,
): Promise<{ key: KeyRow; secret: string }> {
  return await db.transaction(async (tx) => {
    const at = clock.now()
    const organization = await requireRoom(tx, by, at)
    const old = await findUsedKey(tx, by.organizationId, id)
    if (!old || old.revokedAt) throw new ServiceError('not_found', 'There is no such key, or it is revoked.')
    requireMemberScopes(organization, old)
    const { kind, scopes, inboxIds, allowedIps, sendMode, allowedRecipientDomains, confirmNewRecipients } =
      old
    const sending = { sendMode, allowedRecipientDomains, confirmNewRecipients }
    const like = {
      kind,
      scopes,
      inboxIds,
      allowedIps,
      ...sending,
      name,
      requestsPerMinute: old.ownRequestsPerMinute,
    }
    const key = { ...like, expiresInMs: lifetimeOf(organization, old) }
    return await addKey(tx, organization, key, { actor: by.actor, at, replaces: old.id, madeBy: by.personId })
  })
}

/** Revokes one of the organization's keys. When it returns, no node accepts the key any more. */
export async function revokeMemberKey(
  { db, clock }: Deps,
  by: { organizationId: OrganizationId; actor: Actor },
  id: string,
): Promise<void> {
  await db.transaction(async (tx) => {
    const key = await findUsedKey(tx, by.organizationId, id)
    if (!key) throw new ServiceError('not_found', 'There is no such key.')
    if (!key.revokedAt) await revoke(tx, key.id, { actor: by.actor, at: clock.now() })
  })
  await untilKnownEverywhere()
}

/** Takes the organization's lock, so that the count is exact under parallel calls. */
async function requireRoom(
  tx: Tx,
  { organizationId: id, ...maker }: KeyMaker,
  at: Date,
): Promise<OrganizationRow> {
  const organization = await lockOrganization(tx, id)
  if (organization?.status !== 'active') throw new ServiceError('organization_inactive')
  await requireStillChanging(tx, maker)
  const count = await countLiveKeys(tx, id, at)
  if (count >= maxKeys)
    throw new ServiceError(
      'limit_reached',
      `The organization has ${count} keys, which is the limit. Revoke unused keys first.`,
    )
  return organization
}

async function requireWithin(
  tx: Tx,
  { id, limits }: OrganizationRow,
  { inboxIds, allowedIps, requestsPerMinute }: Omit<MemberKeyInput, 'expiresInDays'>,
): Promise<void> {
  for (const inboxId of inboxIds ?? [])
    if ((await findInbox(tx, id, inboxId))?.status !== 'active')
      throw new ServiceError('not_found', `There is no inbox ${inboxId}.`)
  const wrong = allowedIps?.find((ip) => !isIP(ip))
  if (wrong !== undefined)
    throw new ServiceError('invalid_request', `/allowedIps must be IP addresses, and ${wrong} is not one`)
  if (requestsPerMinute !== null && requestsPerMinute > limits.requestsPerMinute)
    throw new ServiceError(
      'invalid_request',
      `/requestsPerMinute must be at most ${limits.requestsPerMinute}, the organization's limit`,
    )
}

/** Keys made before the grant was withdrawn stay valid. They cannot be rotated. */
function requireGrant({ serverKeys }: OrganizationRow): void {
  if (serverKeys) return
  throw new ServiceError(
    'insufficient_scope',
    'Server keys are not granted to this organization. The operator of this service can grant them.',
  )
}

/** Refuses scopes and lifetimes of server keys for other kinds, and server keys if the operator has not granted them. */
function requireKind(
  organization: OrganizationRow,
  { kind, scopes, expiresInDays }: Pick<MemberKeyInput, 'kind' | 'scopes' | 'expiresInDays'>,
): void {
  if (kind === 'server') {
    requireGrant(organization)
    return
  }
  const beyond = scopes.find((scope) => !isIn(memberScopes, scope))
  if (beyond) throw new ServiceError('invalid_request', `/scopes: ${beyond} requires kind server`)
  if (expiresInDays > longestDays)
    throw new ServiceError(
      'invalid_request',
      `/expiresInDays must be at most ${longestDays}, unless kind is server`,
    )
}

/** Security: rotating a key that the operator made with more scopes must not give a member these scopes. */
function requireMemberScopes(organization: OrganizationRow, { kind, scopes }: UsedKeyRow): void {
  const others = scopes.filter((scope) => !isIn(memberScopes, scope))
  if (others.length === 0) return
  if (kind === 'server' && others.every((scope) => isIn(serverScopes, scope))) {
    requireGrant(organization)
    return
  }
  throw new ServiceError(
    'insufficient_scope',
    'The operator created this key with scopes that the dashboard does not offer. Ask the operator for a new key.',
  )
}

function isIn(known: readonly string[], scope: string): boolean {
  return known.includes(scope)
}

function lifetimeOf({ serverKeys }: OrganizationRow, { kind, createdAt, expiresAt }: UsedKeyRow): number {
  const longestMs = (kind === 'server' && serverKeys ? longestServerDays : longestDays) * dayMs
  return expiresAt ? Math.min(longestMs, expiresAt.getTime() - createdAt.getTime()) : longestMs
}
