// Identifiers: made in Node before a row is written, so that a retried batch has the same ones.
import { createHash, randomBytes, randomUUIDv7 } from 'node:crypto'

declare const brand: unique symbol
type Branded<Name extends string> = string & { readonly [brand]: Name }

export type OrganizationId = Branded<'organization'>
export type KeyId = Branded<'key'>
export type InboxId = Branded<'inbox'>
export type ThreadId = Branded<'thread'>
export type MessageId = Branded<'message'>
export type SubmissionId = Branded<'submission'>
export type WebhookId = Branded<'webhook'>
export type DomainId = Branded<'domain'>
export type PersonId = Branded<'person'>
export type SessionId = Branded<'session'>

const prefixes = { inbox: 'inb_', thread: 'thr_', message: 'msg_', webhook: 'whk_' } as const
type PrefixedId = { inbox: InboxId; thread: ThreadId; message: MessageId; webhook: WebhookId }

/** Returns a new `inb_`, `thr_`, `msg_` or `whk_` id: 48 bits of Unix milliseconds, to sort by, then 48 random bits. */
export function newId<Kind extends keyof PrefixedId>(kind: Kind, atMs: number): PrefixedId[Kind] {
  const time = Math.floor(atMs).toString(16).padStart(12, '0')
  return (prefixes[kind] + time + randomHex6()) as PrefixedId[Kind]
}

/** Returns a text below every message id of that time or later. */
export function firstMessageIdAt(atMs: number): string {
  return `msg_${Math.max(0, atMs).toString(16).padStart(12, '0')}`
}

/** Returns the id of a message's attachment. The first has the index 0. */
export function attachmentIdOf(messageId: MessageId, index: number): string {
  return `att_${messageId.slice(4)}_${index + 1}`
}

let pool = Buffer.alloc(0)

/** Returns six random bytes in hex, from a pool: one system call per few hundred ids. */
function randomHex6(): string {
  if (pool.length < 6) pool = randomBytes(4092)
  const text = pool.toString('hex', 0, 6)
  pool = pool.subarray(6)
  return text
}

let latestMs = 0
let inLatestMs = 0

/**
 * Returns a new UUID, version 7 (RFC 9562 5.7), for organizations, keys, submissions and events. The UUIDs of one process
 * sort in the order of creation, so that lists by id are in order within a millisecond too.
 */
export function newUuid<Id extends string = string>(): Id {
  const uuid = randomUUIDv7()
  const atMs = uuidTimeMs(uuid)!
  // RFC 9562 6.2: by method 1 the twelve bits after the time count within a millisecond, or while the clock is behind.
  if (atMs > latestMs) [latestMs, inLatestMs] = [atMs, 0]
  else if (inLatestMs < 0xfff) inLatestMs++
  else [latestMs, inLatestMs] = [latestMs + 1, 0]
  return written(latestMs, inLatestMs, uuid) as Id
}

let countedMs = 0
let inCountedMs = 0

/** Returns a new UUID whose time is exactly `atMs`, for rows that are listed from or until a time. */
export function newUuidAt<Id extends string = string>(atMs: number): Id {
  if (atMs !== countedMs) [countedMs, inCountedMs] = [atMs, 0]
  // After 4,096 in one millisecond, the order within it is lost.
  else if (inCountedMs < 0xfff) inCountedMs++
  return written(atMs, inCountedMs, randomUUIDv7()) as Id
}

/** Returns a text below every UUID of version 7 of that time or later. */
export function firstUuidAt(atMs: number): string {
  return written(Math.max(0, atMs), 0, '00000000-0000-7000-8000-000000000000')
}

function written(ms: number, count: number, uuid: string): string {
  const time = ms.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${count.toString(16).padStart(3, '0')}${uuid.slice(18)}`
}

/** Returns the UUID, version 8 (RFC 9562 5.8), of `text`, so that an object that is rebuilt at each read keeps its id. */
export function uuidFor(text: string): string {
  const bytes = createHash('sha256').update(text).digest().subarray(0, 16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x80
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** Returns when a UUID of version 7 was made; null for another version, which has no time. */
export function uuidTimeMs(id: string): number | null {
  return id[14] === '7' ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) : null
}

const base32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Returns the delivery engine's name of a submission, for `Received` lines and logs: 12 characters. */
export function queueIdOf(submissionId: SubmissionId): string {
  const digits = submissionId.replaceAll('-', '').slice(-15)
  // Twenty bits at a time: five hexadecimal digits are four digits in base 32.
  const part = (from: number) => {
    const bits = Number.parseInt(digits.slice(from, from + 5), 16)
    return base32[bits >> 15]! + base32[(bits >> 10) & 31]! + base32[(bits >> 5) & 31]! + base32[bits & 31]!
  }
  return part(0) + part(5) + part(10)
}
