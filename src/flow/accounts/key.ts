// API keys: made, listed, revoked. The secret is shown once. The stored digest reveals nothing of it.
import { hash, randomBytes } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { sha256 } from '../../base/digest.ts'
import { ServiceError } from '../../base/errors.ts'
import { type InboxId, type KeyId, newUuid, type PersonId } from '../../base/ids.ts'
import { writtenAddress } from '../../base/ip-address.ts'
import { parseDomain } from '../../mail/address.ts'
import { trimDomain } from '../../mail/domain-name.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import { findKeysNamed, insertKey, type KeyRow, revokeKey } from '../../store/accounts/keys.ts'
import { findOrganization, type OrganizationRow } from '../../store/accounts/organizations.ts'
import { type Actor, operator, recordAction } from '../audit.ts'
import { untilKnownEverywhere } from '../known-everywhere.ts'
import { requireName } from '../require-name.ts'

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const secretPattern = /^ph_[0-9A-Za-z]{49}$/

/** `ph_`, 43 base62 characters that carry 256 bits, 6 of checksum. */
export function newSecret(): string {
  const body = base62(BigInt(`0x${randomBytes(32).toString('hex')}`), 43)
  return `ph_${body}${checksum(body)}`
}

/** Whether the text is a well-formed key. This refuses a typo without a database read. */
export function isSecret(text: string): boolean {
  return secretPattern.test(text) && checksum(text.slice(3, 46)) === text.slice(46)
}

export function hashSecret(secret: string): Buffer {
  return sha256(secret)
}

function checksum(body: string): string {
  const digest = hash('sha256', `ph_${body}`, 'buffer')
  return base62(BigInt(digest.readUIntBE(0, 4)), 6)
}

function base62(value: bigint, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest /= 62n) text = alphabet[Number(rest % 62n)] + text
  return text
}

export interface KeyInput {
  name: string
  kind: KeyRow['kind']
  scopes: string[]
  inboxIds: InboxId[] | null
  allowedIps: string[] | null
  sendMode: KeyRow['sendMode']
  allowedRecipientDomains: string[] | null
  confirmNewRecipients: boolean
  expiresInMs: number | null
  /** Null: the organization's rate, even if that changes. */
  requestsPerMinute: number | null
}

/** A key without restrictions, as an agent of its organization. */
export const unrestricted: Omit<KeyInput, 'name'> = {
  kind: 'agent',
  scopes: ['*'],
  inboxIds: null,
  allowedIps: null,
  sendMode: 'new_and_reply',
  allowedRecipientDomains: null,
  confirmNewRecipients: false,
  expiresInMs: null,
  requestsPerMinute: null,
}

/** Makes a key for an existing organization, as the operator. Only this answer holds the secret. */
export async function createKey(
  { db, clock }: { db: Db; clock: Clock },
  { organizationId, ...input }: KeyInput & { organizationId: string },
): Promise<{ key: KeyRow; secret: string }> {
  return await db.transaction(async (tx) => {
    const organization = await findOrganization(tx, organizationId)
    if (!organization) throw new ServiceError('not_found', `there is no organization ${organizationId}`)
    return await addKey(tx, organization, input, { actor: operator, at: clock.now() })
  })
}

/**
 * Adds a key and records it in the audit log. Addresses and domains may be spelled in any way. They are stored in the form
 * that callers and recipients are compared in.
 */
export async function addKey(
  tx: Tx,
  { id: organizationId, limits }: OrganizationRow,
  { expiresInMs, ...input }: KeyInput,
  { actor, at, replaces, madeBy }: { actor: Actor; at: Date; replaces?: KeyId; madeBy?: PersonId },
): Promise<{ key: KeyRow; secret: string }> {
  const secret = newSecret()
  const row = {
    ...input,
    name: requireName(input.name),
    allowedIps: input.allowedIps?.map(writtenAddress) ?? null,
    allowedRecipientDomains: input.allowedRecipientDomains?.map(writtenDomain) ?? null,
    id: newUuid<KeyId>(),
    organizationId,
    madeBy,
    createdAt: at,
    expiresAt: expiresInMs === null ? null : new Date(at.getTime() + expiresInMs),
  }
  await insertKey(tx, row, hashSecret(secret))
  const entry = replaces
    ? ({ action: 'key.rotated', detail: { id: row.id, replaces } } as const)
    : ({ action: 'key.created', detail: { id: row.id, scopes: row.scopes } } as const)
  await recordAction(tx, organizationId, actor, { ...entry, subject: row.name, at })
  const requestsPerMinute = row.requestsPerMinute ?? limits.requestsPerMinute
  return { key: { ...row, requestsPerMinute, revokedAt: null }, secret }
}

function writtenDomain(given: string): string {
  const domain = parseDomain(trimDomain(given))
  if (!domain) throw new ServiceError('invalid_request', `${given} is not a domain`)
  return domain
}

/** The organization's usable keys of this name. */
export async function findNamedKeys(
  { db, clock }: { db: Db; clock: Clock },
  organizationId: string,
  name: string,
): Promise<KeyRow[]> {
  return await findKeysNamed(db, organizationId, name, clock.now())
}

/** The only usable key of this name. Throws `not_found` if there is none and `invalid_request` if there are several. */
export async function requireNamedKey(
  deps: { db: Db; clock: Clock },
  organizationId: string,
  name: string,
): Promise<KeyRow> {
  const [key, ...others] = await findNamedKeys(deps, organizationId, name)
  if (!key)
    throw new ServiceError(
      'not_found',
      `there is no key "${name}" in ${organizationId}, or it is revoked or expired`,
    )
  if (others.length === 0) return key
  const ids = [key, ...others].map(({ id }) => id).join(', ')
  throw new ServiceError('invalid_request', `several keys are named "${name}": revoke one by its id (${ids})`)
}

/** Revokes the key. When it returns, no node accepts the key any more. */
export async function endKey({ db, clock }: { db: Db; clock: Clock }, id: string): Promise<KeyRow> {
  const key = await db.transaction((tx) => revoke(tx, id, { actor: operator, at: clock.now() }))
  await untilKnownEverywhere()
  return key
}

/** Revokes the key and records it in the audit log. Nodes may accept the key for a moment longer. */
export async function revoke(tx: Tx, id: string, { actor, at }: { actor: Actor; at: Date }): Promise<KeyRow> {
  const key = await revokeKey(tx, id, at)
  if (!key) throw new ServiceError('not_found', `there is no key ${id}`)
  const entry = { action: 'key.revoked', subject: key.name, detail: { id: key.id }, at } as const
  await recordAction(tx, key.organizationId, actor, entry)
  return key
}
