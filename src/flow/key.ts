// API keys: made, listed, revoked. The secret leaves once; what is stored reveals nothing of it.
import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../base/clock.ts'
import { ServiceError } from '../base/errors.ts'
import { type InboxId, type KeyId, newUuid } from '../base/ids.ts'
import type { Db } from '../store/db.ts'
import { insertKey, type KeyRow, revokeKey } from '../store/keys.ts'
import { findOrganization } from '../store/organizations.ts'

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const secretPattern = /^ph_[0-9A-Za-z]{49}$/

/** A node's cached key lives this long at most, so a revocation holds everywhere after it. */
export const keyCacheMs = 1_000

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
  return createHash('sha256').update(secret).digest()
}

function checksum(body: string): string {
  const digest = createHash('sha256').update(`ph_${body}`).digest()
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
  requestsPerMinute: number | null
}

/** Makes a key of an existing organization; the secret is in the answer and nowhere else. */
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
    const row: KeyRow = {
      ...rest,
      id: newUuid<KeyId>(),
      organizationId: organization.id,
      expiresAt: expiresInMs === null ? null : new Date(createdAt.getTime() + expiresInMs),
      requestsPerMinute: requestsPerMinute ?? organization.limits.requestsPerMinute,
      createdAt,
      revokedAt: null,
    }
    await insertKey(tx, row, hashSecret(secret))
    return row
  })
  return { key, secret }
}

/** Revokes the key; once it returns, no node accepts it any more. */
export async function endKey(deps: { db: Db; clock: Clock }, id: string): Promise<KeyRow> {
  const key = await deps.db.transaction((tx) => revokeKey(tx, id, deps.clock.now()))
  if (!key) throw new ServiceError('not_found', `there is no key ${id}`)
  await sleep(keyCacheMs + 100)
  return key
}
