// Lists the fields of a header one by one, raw and decoded.
import { isUtf8 } from 'node:buffer'
import { oneLine, wellFormed } from './charset.ts'
import { decodeEncodedWords } from './encoded-word.ts'
import { maxBlockBytes, maxFields, nameOf, readValue } from './header-scan.ts'

/** Byte range of a field, from its name to the last byte before its line end. */
export interface FieldSpan {
  start: number
  /** Index of the byte after the colon. */
  valueStart: number
  end: number
}

export interface RawField {
  /** As written. */
  name: string
  /** Unfolded, with encoded words decoded, without control characters. Reads the first 256 KiB. */
  value: string
  /** The whole field without its last line end, as UTF-8, or as Latin-1 if it is not valid UTF-8. A NUL becomes U+FFFD. */
  raw: string
}

const lf = 0x0a
const cr = 0x0d
const space = 0x20
const tab = 0x09

/**
 * Finds the fields of the header that begins with the block, up to its first empty line. Lines that are neither field
 * nor continuation are skipped. `isCut`: there are more than 10,000 fields, or the header does not end within 1 MiB. A
 * field that the end of the block cuts is then left out. Linear.
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
  // The last field may continue after the block.
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
