// Reads an object of S3 as a stream, and continues where a broken connection left it.
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { NoBlob, NotOurStore } from '../blobs.ts'
import type { S3Client, S3Opened } from './s3-client.ts'

/** The first and the last byte, inclusive. */
interface Range {
  start: number
  end: number
}

interface OpenObject {
  body: Readable
  /** The number of bytes that the body still has. */
  leftBytes: number
  /** The SHA-256 of the whole object in Base64, if the body is the whole object and the store knows it. */
  checksum: string | null
}

/** An object whose body ends early this often in a row, without a new byte, is given up. */
const maxBreaks = 5
const breakMs = 200
/** A reader can come back later, so it waits less than a mail that was uploaded. */
const readMs = 12_000

/** Opens the object, or a range of it. Returns null if there is none. Throws `NotOurStore`. */
export async function openObject(
  client: S3Client,
  object: string,
  range: Range | null,
): Promise<Readable | null> {
  const first = await openFrom(client, object, range)
  return first && streamOf(client, { object, range, first })
}

/** Returns a stream that opens the object when it is read. It ends with the error `NoBlob` if there is none. */
export function readObject(client: S3Client, object: string): Readable {
  return streamOf(client, { object, range: null, first: null })
}

async function openFrom(client: S3Client, object: string, range: Range | null): Promise<OpenObject | null> {
  const headers: Record<string, string> = range
    ? { range: `bytes=${range.start}-${range.end}` }
    : { 'x-amz-checksum-mode': 'ENABLED' }
  const opened = await client.open({ method: 'GET', key: object, headers, may: [404], patienceMs: readMs })
  if (opened.status === 404) {
    discard(opened.body)
    return null
  }
  return describe(client, opened, range)
}

function describe(
  { location }: S3Client,
  { status, headers, body }: S3Opened,
  range: Range | null,
): OpenObject {
  const leftBytes = Number(headers['content-length'])
  const isAsked =
    range === null || (status === 206 && headers['content-range']?.startsWith(`bytes ${range.start}-`))
  if (!isAsked || !Number.isSafeInteger(leftBytes)) {
    discard(body)
    throw new NotOurStore(`${location} does not answer with the range of an object that it was asked for`)
  }
  const checksum = range === null ? (headers['x-amz-checksum-sha256'] ?? null) : null
  // The checksum of an object in parts has the number of parts at its end, and is not that of the bytes.
  return { body, leftBytes, checksum: checksum?.includes('-') ? null : checksum }
}

interface Reading {
  object: string
  range: Range | null
  first: OpenObject | null
}

function streamOf(client: S3Client, reading: Reading): Readable {
  const current: Current = { body: reading.first?.body ?? null, isClosed: false }
  const stream = Readable.from(piecesOf(client, reading, current), { objectMode: false })
  stream.once('close', () => {
    current.isClosed = true
    if (current.body) discard(current.body)
  })
  return stream
}

/** Ends a body that is not read to its end. */
function discard(body: Readable): void {
  body.on('error', () => {}) // that it was ended
  body.destroy()
}

/** The body that is being read. It ends with the stream, also if no piece was read. */
interface Current {
  body: Readable | null
  isClosed: boolean
}

async function* piecesOf(
  client: S3Client,
  { object, range, first }: Reading,
  current: Current,
): AsyncGenerator<Buffer> {
  let opened = first ?? (await openFrom(client, object, range))
  if (!opened) throw new NoBlob(client.location, object)
  const { checksum } = opened
  const digest = checksum === null ? null : createHash('sha256')
  let at = range?.start ?? 0
  const end = at + opened.leftBytes
  for (let breaks = 0; ; breaks++) {
    current.body = opened.body
    let cause: unknown
    try {
      for await (const piece of opened.body) {
        at += piece.length
        breaks = 0
        digest?.update(piece)
        yield piece
      }
    } catch (error) {
      // The connection broke. The rest is read over another one.
      cause = error
    }
    if (at === end || current.isClosed) break
    if (breaks >= maxBreaks || at > end)
      throw new NotOurStore(`${client.location} ends ${object} early`, { cause })
    await pause(breakMs * breaks)
    opened = await openFrom(client, object, { start: at, end: end - 1 })
    if (!opened) throw new NoBlob(client.location, object)
  }
  if (digest && at === end && digest.digest('base64') !== checksum)
    throw new NotOurStore(`${client.location} returned other bytes of ${object} than were stored`)
}
