// Streams a clean attachment to callers who may read its message.

import type { Readable } from 'node:stream'
import { ServiceError } from '../../base/errors.ts'
import { attachmentIdOf } from '../../base/ids.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import { decodeStream } from '../../mail/read/transfer-stream.ts'
import type { Queryable } from '../../postgres/db.ts'
import { type AttachmentEntry, findMessage, type MessageRow } from '../../store/mailbox/messages.ts'
import { scanStatesOf } from '../../store/mailbox/scans.ts'
import { type Caller, requireInbox } from '../caller.ts'
import { openStored, streamFrom } from '../stored-bytes.ts'

export interface AttachmentDeps {
  db: Queryable
  blobs: Blobs
  maxDownloadBytes: number
}

export interface OpenAttachment {
  filename: string
  sizeBytes: number
  stream: Readable
}

type AttachmentName = { messageId: string; attachmentId: string }

/** The scan states of all attachments of the message, in order. Null if this attachment has a verdict already. */
export async function findUnscanned(
  db: Queryable,
  caller: Caller,
  name: AttachmentName,
): Promise<string | null> {
  const { message, entry } = await requireAttachment(db, caller, name)
  return entry.scanState === 'unscanned' ? scanStatesOf(message.attachments) : null
}

/** Opens an attachment. Refuses it unless it is clean and within this deployment's download limit. */
export async function readAttachment(
  { db, blobs, maxDownloadBytes }: AttachmentDeps,
  caller: Caller,
  name: AttachmentName,
): Promise<OpenAttachment> {
  const { message, entry } = await requireAttachment(db, caller, name)
  // Checked before the scan state: no scan makes the attachment smaller.
  if (entry.size > maxDownloadBytes) throw new ServiceError('attachment_too_large')
  if (entry.scanState === 'unscanned') throw new ServiceError('attachment_not_scanned')
  if (entry.scanState !== 'clean') throw new ServiceError('attachment_not_clean')
  const { rawId } = message
  const { span } = entry
  const stored = rawId && span ? await openStored({ db, blobs }, rawId, span) : null
  // It was deleted after its message was read.
  if (!stored || !span) throw new ServiceError('not_found', 'There is no such attachment.')
  const pieces = exactly(decodeStream(stored.stream, span.encoding), entry.size)
  return { filename: entry.filename, sizeBytes: entry.size, stream: streamFrom(stored.stream, pieces) }
}

async function requireAttachment(
  db: Queryable,
  caller: Caller,
  { messageId, attachmentId }: AttachmentName,
): Promise<{ message: MessageRow; entry: AttachmentEntry }> {
  const message = await findMessage(db, caller.organizationId, messageId)
  if (!message) throw new ServiceError('not_found', 'There is no such message.')
  requireInbox(caller, message.inboxId)
  const entry = findAttachment(message, attachmentId)
  if (!entry) throw new ServiceError('not_found', 'There is no such attachment.')
  return { message, entry }
}

function findAttachment({ id, attachments }: MessageRow, attachmentId: string): AttachmentEntry | undefined {
  const index = attachments.findIndex((_, index) => attachmentId === attachmentIdOf(id, index))
  return attachments[index]
}

/** Throws unless `pieces` have exactly `sizeBytes`. A client would take an extra byte for the start of the next answer. */
async function* exactly(pieces: AsyncIterable<Buffer>, sizeBytes: number): AsyncGenerator<Buffer> {
  let left = sizeBytes
  for await (const piece of pieces) {
    left -= piece.length
    if (left < 0) break
    yield piece
  }
  if (left !== 0) throw new Error('an attachment is not as long as it was when it was scanned')
}
