// The stored bytes of a mail, in its row or in a blob: opened for reading, and passed to the parser.
import { Readable } from 'node:stream'
import { ServiceError } from '../base/errors.ts'
import type { Blobs } from '../blobs/blobs.ts'
import type { MailBytes } from '../mail/parse-worker.ts'
import type { Queryable } from '../postgres/db.ts'
import { findRaw, type RawRow } from '../store/mailbox/raws.ts'

interface StoredDeps {
  db: Queryable
  blobs: Blobs
}

/**
 * Opens the bytes. Null if they were deleted. Rejects with `unavailable` while the blob folder is away, and with an internal
 * error if a blob is lost. An open stream stays readable.
 */
export async function openStored(
  { db, blobs }: StoredDeps,
  rawId: string,
  span?: { start: number; length: number },
): Promise<{ sizeBytes: number; stream: Readable } | null> {
  const raw = await findRaw(db, rawId)
  if (!raw) return null
  const { sizeBytes } = raw
  const stream = await openRaw(blobs, raw, span ?? { start: 0, length: sizeBytes })
  if (stream) return { sizeBytes, stream }
  // A deletion removes the row first and the blob after it.
  if (!(await findRaw(db, rawId))) return null
  if (!(await blobs.isThere())) throw new ServiceError('unavailable')
  throw new Error(`the blob ${raw.blob} is not in the store, though its row is there`)
}

/** The bytes in this range. Null if the blob is missing. */
export async function openRaw(
  blobs: Blobs,
  { bytes, blob }: RawRow,
  { start, length }: { start: number; length: number },
): Promise<Readable | null> {
  if (length === 0) return Readable.from([])
  if (bytes) return Readable.from([bytes.subarray(start, start + length)])
  return await blobs.open(blob!, { start, end: start + length - 1 })
}

/** A stream of `pieces`, which read from `source`. Closing the stream destroys `source`, even if no piece was read. */
export function streamFrom(source: Readable, pieces: AsyncIterable<Buffer>): Readable {
  const stream = Readable.from(pieces, { objectMode: false })
  stream.once('close', () => source.destroy())
  return stream
}

/** A mail has either bytes in its row or a blob. */
interface MailRow {
  bytes: Buffer | null
  blob: string | null
  sizeBytes: number
}

export async function withMailBytes<Found>(
  blobs: Blobs,
  { bytes, blob, sizeBytes }: MailRow,
  use: (raw: MailBytes) => Promise<Found>,
): Promise<Found> {
  if (bytes) return await use(bytes)
  return await blobs.withFile(blob!, (path) => use({ path, sizeBytes }))
}
