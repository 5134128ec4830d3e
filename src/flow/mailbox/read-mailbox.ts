// Reads of mail with the caller's restrictions applied: another's id is an id that does not exist.
import type { Readable } from 'node:stream'
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { DiskBlobs } from '../../blobs/disk.ts'
import { readQuery } from '../../mail/read/words.ts'
import type { Db, Queryable } from '../../postgres/db.ts'
import { findInbox, type InboxRow } from '../../store/inboxes.ts'
import { exportMessages, type MessagePage, type PageSize } from '../../store/message-pages.ts'
import { findMessage, findThread, type MessageRow, type ThreadRow } from '../../store/messages.ts'
import { writeQuery } from '../../store/search.ts'
import { type Caller, requireInbox } from '../caller.ts'
import { openStored, streamFrom } from './stored-bytes.ts'
import { traceHeader } from './trace-fields.ts'

const tombstoneMs = 30 * 86_400_000

export async function readInbox(db: Db, caller: Caller, id: string): Promise<InboxRow> {
  const inbox = await findInbox(db, caller.organizationId, id)
  if (inbox?.status !== 'active') throw new ServiceError('not_found')
  requireInbox(caller, inbox.id)
  return inbox
}

/** What a search for `query` asks the store for; `invalid_request` where there is no word in it. */
export function readWords(query: string): string {
  const phrases = readQuery(query)
  // Some letters are nothing by themselves, as the filler of Hangul is.
  if (phrases.length === 0) throw new ServiceError('invalid_request', '/q must hold a word to look for')
  return writeQuery(phrases)
}

export async function readThread(db: Db, caller: Caller, id: string): Promise<ThreadRow> {
  const thread = await findThread(db, caller.organizationId, id)
  if (!thread) throw new ServiceError('not_found')
  requireInbox(caller, thread.inboxId)
  return thread
}

export async function readMessage(db: Db, caller: Caller, id: string): Promise<MessageRow> {
  const message = await findMessage(db, caller.organizationId, id)
  if (!message) throw new ServiceError('not_found')
  requireInbox(caller, message.inboxId)
  return message
}

export interface ExportPage extends MessagePage {
  inbox: InboxRow
}

/** The inbox's messages after a number, oldest first; complete under concurrent writes, for numbers are given under a lock. */
export async function exportPage(
  { db, clock }: { db: Queryable; clock: Clock },
  caller: Caller,
  inboxId: string,
  afterSeq: number,
  size: PageSize,
): Promise<ExportPage> {
  const inbox = await findInbox(db, caller.organizationId, inboxId)
  if (!inbox || (inbox.deletedAt && clock.nowMs() - inbox.deletedAt.getTime() > tombstoneMs))
    throw new ServiceError('not_found')
  requireInbox(caller, inbox.id)
  if (inbox.status === 'deleted') throw new ServiceError('inbox_deleted')
  const { page, last } = await exportMessages(db, inbox.id, afterSeq, size)
  // Deleted since: an end that is none must not be taken for a whole export.
  const requireStill = async () => {
    if ((await findInbox(db, caller.organizationId, inboxId))?.status !== 'active')
      throw new ServiceError('inbox_deleted')
  }
  if (!Array.isArray(page)) return { inbox, page: followedBy(requireStill, page), last }
  if (!last) await requireStill()
  return { inbox, page, last }
}

async function* followedBy<Item>(
  check: () => Promise<void>,
  items: AsyncIterable<Item>,
): AsyncGenerator<Item> {
  yield* items
  await check()
}

/** An inbound message as it was received, below its trace fields. */
export async function readSource(
  { db, blobs }: { db: Db; blobs: DiskBlobs },
  caller: Caller,
  messageId: string,
): Promise<{ sizeBytes: number; stream: Readable }> {
  const message = await readMessage(db, caller, messageId)
  const stored = message.security && message.rawId ? await openStored({ db, blobs }, message.rawId) : null
  if (!stored || !message.security) throw new ServiceError('not_found')
  const trace = Buffer.from(traceHeader(message.security, message.id, message.createdAt))
  return {
    sizeBytes: trace.length + stored.sizeBytes,
    stream: streamFrom(stored.stream, prepend(trace, stored.stream)),
  }
}

async function* prepend(first: Buffer, rest: Readable): AsyncGenerator<Buffer> {
  yield first
  yield* rest
}
