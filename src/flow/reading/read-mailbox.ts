// Reads of mail within the caller's restrictions. An id of another organization is treated as unknown.
import type { Readable } from 'node:stream'
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { InboxId } from '../../base/ids.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import { readQuery } from '../../mail/read/words.ts'
import type { Queryable } from '../../postgres/db.ts'
import { findInbox, type InboxRow } from '../../store/mailbox/inboxes.ts'
import { listFollowing, type MessagePage } from '../../store/mailbox/message-pages.ts'
import {
  findMessage,
  findSeq,
  findThread,
  type MessageRow,
  type ThreadRow,
} from '../../store/mailbox/messages.ts'
import { writeTsquery } from '../../store/mailbox/search.ts'
import { type Caller, requireInbox } from '../caller.ts'
import { openStored, streamFrom } from '../stored-bytes.ts'
import { traceHeader } from './trace-fields.ts'

const tombstoneMs = 30 * 86_400_000

export async function readInbox(db: Queryable, caller: Caller, id: string): Promise<InboxRow> {
  const inbox = await findInbox(db, caller.organizationId, id)
  if (inbox?.status !== 'active') throw new ServiceError('not_found', 'There is no such inbox.')
  requireInbox(caller, inbox.id)
  return inbox
}

/** Translates a search for `query` into the store's syntax. Throws `invalid_request` if it contains no word. */
export function readWords(query: string): string {
  const phrases = readQuery(query)
  // Some letters, such as the filler of Hangul, are no word by themselves.
  if (phrases.length === 0) throw new ServiceError('invalid_request', '/q must contain a word to search for')
  return writeTsquery(phrases)
}

export async function readThread(db: Queryable, caller: Caller, id: string): Promise<ThreadRow> {
  const thread = await findThread(db, caller.organizationId, id)
  if (!thread) throw new ServiceError('not_found', 'There is no such thread.')
  requireInbox(caller, thread.inboxId)
  return thread
}

export async function readMessage(db: Queryable, caller: Caller, id: string): Promise<MessageRow> {
  const message = await findMessage(db, caller.organizationId, id)
  if (!message) throw new ServiceError('not_found', 'There is no such message.')
  requireInbox(caller, message.inboxId)
  return message
}

/**
 * The message's position in the inbox's order of filing. A deleted message keeps its position for 30 days. `'0'` is before
 * the first message. Throws `invalid_request` for an unknown message.
 */
export async function findPosition(db: Queryable, inboxId: InboxId, after: string): Promise<number> {
  const seq = after === '0' ? 0 : await findSeq(db, inboxId, after)
  if (seq === null)
    throw new ServiceError(
      'invalid_request',
      '/after must be the id of a message in this inbox, or 0. If that message was deleted more than 30 days ago, use the id of a message read since',
    )
  return seq
}

/** The inbox's messages after a position in the order of filing. New messages always come after those already read. */
export async function readFollowing(
  db: Queryable,
  caller: Caller,
  {
    inboxId,
    direction,
    afterSeq,
  }: { inboxId: string; direction: MessageRow['direction'] | null; afterSeq: number },
  limit: number,
): Promise<MessagePage> {
  const inbox = await readInbox(db, caller, inboxId)
  return await listFollowing(db, { inboxId: inbox.id, direction }, afterSeq, limit)
}

export interface ExportPage extends MessagePage {
  inbox: InboxRow
}

/** The inbox's messages after a number, oldest first. Complete under concurrent writes, as a lock guards the numbers. */
export async function exportPage(
  { db, clock }: { db: Queryable; clock: Clock },
  caller: Caller,
  inboxId: string,
  afterSeq: number,
  limit: number,
): Promise<ExportPage> {
  const inbox = await findInbox(db, caller.organizationId, inboxId)
  if (!inbox || (inbox.deletedAt && clock.nowMs() - inbox.deletedAt.getTime() > tombstoneMs))
    throw new ServiceError('not_found', 'There is no such inbox.')
  requireInbox(caller, inbox.id)
  if (inbox.status === 'deleted') throw new ServiceError('inbox_deleted')
  const { page, last } = await listFollowing(db, { inboxId: inbox.id, direction: null }, afterSeq, limit)
  // If the inbox was deleted meanwhile, an early end must not pass for a complete export.
  if (!last && (await findInbox(db, caller.organizationId, inboxId))?.status !== 'active')
    throw new ServiceError('inbox_deleted')
  return { inbox, page, last }
}

interface Received {
  /** The fields that this service writes above the message. */
  trace: Buffer
  /** The message's bytes, or the first `maxBytes` of them. `sizeBytes` is always the full size. */
  stored: { sizeBytes: number; stream: Readable }
}

/** Opens the bytes of an inbound message. Outbound messages have none. */
export async function openReceived(
  { db, blobs }: { db: Queryable; blobs: Blobs },
  caller: Caller,
  messageId: string,
  maxBytes?: number,
): Promise<Received> {
  const { id, security, rawId, createdAt } = await readMessage(db, caller, messageId)
  const span = maxBytes === undefined ? undefined : { start: 0, length: maxBytes }
  const stored = security && rawId ? await openStored({ db, blobs }, rawId, span) : null
  if (!stored || !security) throw new ServiceError('not_found', 'Only received messages have a source.')
  return { trace: Buffer.from(traceHeader(security, id, createdAt)), stored }
}

/** An inbound message as received, below its trace fields. */
export async function readSource(
  deps: { db: Queryable; blobs: Blobs },
  caller: Caller,
  messageId: string,
): Promise<{ sizeBytes: number; stream: Readable }> {
  const { trace, stored } = await openReceived(deps, caller, messageId)
  return {
    sizeBytes: trace.length + stored.sizeBytes,
    stream: streamFrom(stored.stream, prepend(trace, stored.stream)),
  }
}

async function* prepend(first: Buffer, rest: Readable): AsyncGenerator<Buffer> {
  yield first
  yield* rest
}
