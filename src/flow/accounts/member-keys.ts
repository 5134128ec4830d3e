// Keys as members make them: within what the dashboard gives, for 30 days at most, and never more than the organization has.
import { isIP } from 'node:net'
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { KeyId, OrganizationId, PersonId } from '../../base/ids.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import { findInbox } from '../../store/inboxes.ts'
import { countLiveKeys, findUsedKey, type KeyRow, type UsedKeyRow } from '../../store/keys.ts'
import { lockOrganization, type OrganizationRow } from '../../store/organizations.ts'
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
  actor: Actor
}

/** What a key of the dashboard can permit. */
export const memberScopes = [
  ...(['mailbox:manage', 'mailbox:read', 'mailbox:send', 'domain:manage', 'webhook:manage'] as const),
  'delivery:read',
] satisfies Scope[]

const dayMs = 86_400_000
const longestDays = 30
/** Keys of one organization that can be used at once. */
const maxKeys = 500

/** The kinds of key that members make. Mail of kind `agent` is marked as automatic. */
export const memberKinds = ['agent', 'dashboard'] as const satisfies KeyRow['kind'][]

export interface MemberKeyInput extends Omit<KeyInput, 'kind' | 'expiresInMs'> {
  kind: (typeof memberKinds)[number]
  expiresInDays: number
}

/** Makes a key of an active organization; the secret is in the answer and nowhere else. */
export async function createMemberKey(
  { db, clock }: Deps,
  by: KeyMaker,
  { expiresInDays, ...input }: MemberKeyInput,
): Promise<{ key: KeyRow; secret: string }> {
  return await db.transaction(async (tx) => {
    const at = clock.now()
    const organization = await requireRoom(tx, by, at)
    await requireWithin(tx, organization, input)
    const key = { ...input, expiresInMs: expiresInDays * dayMs }
    return await addKey(tx, organization, key, { actor: by.actor, at, madeBy: by.personId })
  })
}

/**
 * Makes another key with the kind, scopes, restrictions and lifetime of this one. The old key stays valid until it is
 * revoked. Who rotates is the maker of the new key.
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
    if (!old || old.revokedAt) throw new ServiceError('not_found', 'There is no such key, or it was revoked.')
    requireMemberScopes(old)
    const { kind, scopes, inboxIds, allowedIps, sendMode, allowedRecipientDomains } = old
    const restrictions = { kind, scopes, inboxIds, allowedIps, sendMode, allowedRecipientDomains }
    const like = { ...restrictions, name, requestsPerMinute: old.ownRequestsPerMinute }
    const key = { ...like, expiresInMs: lifetimeOf(old) }
    return await addKey(tx, organization, key, { actor: by.actor, at, replaces: old.id, madeBy: by.personId })
  })
}

/** Ends one of the organization's keys; once it returns, no node accepts it any more. */
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

/** Under the organization's lock, so that the count is exact under parallel calls. */
async function requireRoom(
  tx: Tx,
  { organizationId: id, keyId }: KeyMaker,
  at: Date,
): Promise<OrganizationRow> {
  const organization = await lockOrganization(tx, id)
  if (organization?.status !== 'active') throw new ServiceError('organization_inactive')
  await requireStillChanging(tx, keyId)
  const count = await countLiveKeys(tx, id, at)
  if (count >= maxKeys)
    throw new ServiceError(
      'limit_reached',
      `The organization has ${count} keys. Revoke those that nothing uses.`,
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
    throw new ServiceError('invalid_request', `/allowedIps must be IP addresses: ${wrong} is none`)
  if (requestsPerMinute !== null && requestsPerMinute > limits.requestsPerMinute)
    throw new ServiceError(
      'invalid_request',
      `/requestsPerMinute must be at most ${limits.requestsPerMinute}, which is the organization's`,
    )
}

/** Security: a key that the operator made with more is not a way to more. */
function requireMemberScopes({ scopes }: UsedKeyRow): void {
  if (scopes.every((scope) => memberScopes.some((known) => known === scope))) return
  throw new ServiceError(
    'insufficient_scope',
    'The operator made this key with scopes that are not given here: ask for another one there.',
  )
}

function lifetimeOf({ createdAt, expiresAt }: UsedKeyRow): number {
  const longestMs = longestDays * dayMs
  return expiresAt ? Math.min(longestMs, expiresAt.getTime() - createdAt.getTime()) : longestMs
}
