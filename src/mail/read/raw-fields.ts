// The fields of a header one by one, as they stand and as they read.
import { isUtf8 } from 'node:buffer'
import { oneLine, wellFormed } from './charset.ts'
import { decodeEncodedWords } from './encoded-word.ts'
import { maxBlockBytes, maxFields, nameOf, readValue } from './header-scan.ts'

/** Where a field stands: from its name to the last byte before its line end. */
export interface FieldSpan {
  start: number
  /** The byte behind its colon. */
  valueStart: number
  end: number
}

export interface RawField {
  /** As it was written. */
  name: string
  /** Unfolded, encoded words decoded, without control characters; of the first 256 KiB. */
  value: string
  /**
   * The whole field without its last line end: UTF-8, or where it is not that each byte the character of its number. A NUL is
   * U+FFFD.
   */
  raw: string
}

const lf = 0x0a
const cr = 0x0d
const space = 0x20
const tab = 0x09

/**
 * Finds the fields of the header that begins with the block, up to its first empty line; lines that are neither field nor
 * continuation are passed over. `isCut`: there are more than 10,000 fields, or there is no end within 1 MiB; a field that
 * the end of the block cuts is left out then. Linear.
 */
export function findFields(block: Buffer): { spans: FieldSpan[]; isCut: boolean } {
  const spans: FieldSpan[] = []
  const isFull = block.length >= maxBlockBytes
  let open: FieldSpan | null = null
  for (let at = 0; at < block.length; ) {
    const found = block.indexOf(lf, at)
    const lineEnd = found < 0 ? block.length : found
    const end = lineEnd > at && block[lineEnd - 1] === cr ? lineEnd - 1 : lineEnd
    if (end === at) return { spans, isCut: false }
    const isContinuation = block[at] === space || block[at] === tab
    if (!isContinuation && (spans.length === maxFields || (found < 0 && isFull)))
      return { spans, isCut: true }
    if (!isContinuation) open = openField(block, at, end)
    else if (open) open.end = end
    if (open && !isContinuation) spans.push(open)
    at = lineEnd + 1
  }
  // The last one may go on behind the block.
  return { spans: isFull ? spans.slice(0, -1) : spans, isCut: isFull }
}

function openField(block: Buffer, start: number, end: number): FieldSpan | null {
  const name = nameOf(block, start, end)
  return name === null ? null : { start, valueStart: start + name.length + 1, end }
}

export function readField(block: Buffer, { start, valueStart, end }: FieldSpan): RawField {
  const bytes = block.subarray(start, end)
  return {
    name: oneLine(block.toString('latin1', start, valueStart - 1).trimEnd()),
    value: oneLine(decodeEncodedWords(readValue(block, valueStart, end))),
    raw: wellFormed(bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1')),
  }
}
