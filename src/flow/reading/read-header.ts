// The header fields of a received message: those of `readSource`, up to its first empty line.

import type { Readable } from 'node:stream'
import { setImmediate as yieldLoop } from 'node:timers/promises'
import type { Blobs } from '../../blobs/blobs.ts'
import { maxBlockBytes } from '../../mail/read/header-scan.ts'
import { type FieldSpan, findFields, type RawField, readField } from '../../mail/read/raw-fields.ts'
import type { Queryable } from '../../postgres/db.ts'
import { LongText } from '../../store/long-text.ts'
import type { Caller } from '../caller.ts'
import { openReceived } from './read-mailbox.ts'

/** A field. Long values are written piece by piece. */
export type WrittenField = { [Part in keyof RawField]: string | LongText }

export interface ReceivedHeader {
  /** In order, with the fields that this service wrote first. A large header is read lazily. */
  fields: WrittenField[] | AsyncIterable<WrittenField>
  /** Whether there are more than 10,000 fields, or more than 1 MiB of them. */
  isCut: boolean
  /** Bytes that stay in memory until all fields are read. */
  heldBytes: number
}

/** Measured: this takes 2 ms. 1 MiB of any shape takes 10 to 30 ms. */
const maxAtOnceBytes = 64 * 1024

export async function readHeader(
  deps: { db: Queryable; blobs: Blobs },
  caller: Caller,
  messageId: string,
): Promise<ReceivedHeader> {
  const { trace, stored } = await openReceived(deps, caller, messageId, maxBlockBytes)
  const block = Buffer.concat([trace, await readStart(stored.stream)])
  const { spans, isCut } = findFields(block)
  const lastEnd = spans.at(-1)?.end ?? 0
  if (lastEnd <= maxAtOnceBytes)
    return { fields: spans.map((span) => readField(block, span)), isCut, heldBytes: 0 }
  return { fields: readEach(block, spans), isCut, heldBytes: block.length }
}

/** The bytes up to the first empty line, and some after it. */
async function readStart(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  let tail = ''
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    // The empty line may have begun in the previous chunk.
    if (chunk.includes('\r\n\r\n') || (tail + chunk.toString('latin1', 0, 3)).includes('\r\n\r\n')) break
    tail = chunk.toString('latin1', Math.max(0, chunk.length - 3))
  }
  return Buffer.concat(chunks)
}

async function* readEach(block: Buffer, spans: FieldSpan[]): AsyncGenerator<WrittenField> {
  let unyieldedBytes = 0
  for (const span of spans) {
    const { name, value, raw } = readField(block, span)
    yield { name, value: orLong(value), raw: orLong(raw) }
    unyieldedBytes += span.end - span.start
    // Lets other requests run in between.
    if (unyieldedBytes < maxAtOnceBytes) continue
    unyieldedBytes = 0
    await yieldLoop()
  }
}

function orLong(text: string): string | LongText {
  if (text.length <= maxAtOnceBytes) return text
  return new LongText(async function* () {
    yield text
  })
}
