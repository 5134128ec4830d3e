// API keys: made, listed, revoked. The secret leaves once; what is stored reveals nothing of it.
import { hash, randomBytes } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { sha256 } from '../../base/digest.ts'
import { ServiceError } from '../../base/errors.ts'
import { type InboxId, type KeyId, newUuid } from '../../base/ids.ts'
import { writtenAddress } from '../../base/ip-address.ts'
import { parseDomain } from '../../mail/address.ts'
import { trimDomain } from '../../mail/domain-name.ts'
import type { Db } from '../../postgres/db.ts'
import { insertKey, type KeyRow, revokeKey } from '../../store/keys.ts'
import { findOrganization } from '../../store/organizations.ts'
import { untilKnownEverywhere } from '../known-everywhere.ts'

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const secretPattern = /^ph_[0-9A-Za-z]{49}$/

/** `ph_`, 43 base62 characters that carry 256 bits, 6 of checksum. */
export function newSecret(): string {
  const body = base62(BigInt(`0x${randomBytes(32).toString('hex')}`), 43)
  return `ph_${body}${checksum(body)}`
}

/** Whether it can be a key at all: a typo is refused without a database read. */
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
  organizationId: string
  name: string
  kind: KeyRow['kind']
  scopes: string[]
  inboxIds: InboxId[] | null
  allowedIps: string[] | null
  sendMode: KeyRow['sendMode']
  allowedRecipientDomains: string[] | null
  expiresInMs: number | null
  /** Null: the organization's, whatever that becomes. */
  requestsPerMinute: number | null
}

/**
 * Makes a key of an existing organization; the secret is in the answer and nowhere else. Its addresses and domains may
 * be spelled in any way: they are kept in the form that callers and recipients are compared in.
 */
export async function createKey(
  deps: { db: Db; clock: Clock },
  input: KeyInput,
): Promise<{ key: KeyRow; secret: string }> {
  const { expiresInMs, requestsPerMinute, ...rest } = input
  const createdAt = deps.clock.now()
  const secret = newSecret()
  const key = await deps.db.transaction(async (tx) => {
    const organization = await findOrganization(tx, input.organizationId)
    if (!organization) throw new ServiceError('not_found', `there is no organization ${input.organizationId}`)
    const row = {
      ...rest,
      allowedIps: rest.allowedIps?.map(writtenAddress) ?? null,
      allowedRecipientDomains: rest.allowedRecipientDomains?.map(writtenDomain) ?? null,
      id: newUuid<KeyId>(),
      organizationId: organization.id,
      expiresAt: expiresInMs === null ? null : new Date(createdAt.getTime() + expiresInMs),
      requestsPerMinute,
      createdAt,
    }
    await insertKey(tx, row, hashSecret(secret))
    const rate = requestsPerMinute ?? organization.limits.requestsPerMinute
    return { ...row, requestsPerMinute: rate, revokedAt: null }
  })
  return { key, secret }
}

function writtenDomain(given: string): string {
  const domain = parseDomain(trimDomain(given))
  if (!domain) throw new ServiceError('invalid_request', `${given} is not a domain`)
  return domain
}

/** Revokes the key; once it returns, no node accepts it any more. */
export async function endKey(deps: { db: Db; clock: Clock }, id: string): Promise<KeyRow> {
  const key = await deps.db.transaction((tx) => revokeKey(tx, id, deps.clock.now()))
  if (!key) throw new ServiceError('not_found', `there is no key ${id}`)
  await untilKnownEverywhere()
  return key
}
