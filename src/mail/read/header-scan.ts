// Finds the end of a header block and its fields, still encoded, in one cheap, bounded pass.
import type { Bytes } from './bytes.ts'
import { decodeText } from './charset.ts'

export const maxFields = 10_000
export const maxBlockBytes = 1 << 20
const maxValueBytes = 256 * 1024
const maxNameBytes = 76

const lf = 0x0a
const cr = 0x0d
const space = 0x20
const tab = 0x09

export interface HeaderScan {
  /** Offset of the first byte of the body. */
  headerEnd: number
  /** The block exceeded 10,000 fields or 1 MiB, so later fields were not read. */
  isTruncated: boolean
  /** Number of fields with that name, compared case-insensitively. */
  count(name: string): number
  /** The values in order, unfolded and trimmed, without decoding encoded words. Up to 256 KiB of each is read. */
  values(name: string): string[]
  /** The first value, or null. It is the one that counts if a field that may occur once is repeated. */
  first(name: string): string | null
}

/**
 * Scans the header of the message or body part that begins at `start`. The block ends with its first empty line, with
 * the bytes, or before the first line that `endsBefore` accepts. Lines end with LF. Lines that are neither field nor
 * continuation are skipped.
 */
export function scanHeader(
  raw: Uint8Array | Bytes,
  start = 0,
  endsBefore?: (lineStart: number, lineEnd: number) => boolean,
): HeaderScan {
  const block = new HeaderBlock(bytesOf(raw), start)
  block.scan(endsBefore)
  return block
}

export function bytesOf(raw: Uint8Array | Bytes): Bytes {
  return raw instanceof Uint8Array ? bufferOver(raw) : raw
}

/** The same bytes as a Buffer, without a copy. */
export function bufferOver(raw: Uint8Array): Buffer {
  return Buffer.isBuffer(raw) ? raw : Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
}

class HeaderBlock implements HeaderScan {
  headerEnd: number
  isTruncated = false
  readonly #raw: Bytes
  readonly #fields = new Map<string, number[]>()
  #fieldCount = 0

  constructor(raw: Bytes, start: number) {
    this.#raw = raw
    this.headerEnd = start
  }

  scan(endsBefore?: (lineStart: number, lineEnd: number) => boolean): void {
    const raw = this.#raw
    const stopAt = this.headerEnd + maxBlockBytes
    let ranges: number[] | null = null
    for (let at = this.headerEnd; at < raw.length; ) {
      const found = raw.indexOf(lf, at)
      const lineEnd = found < 0 ? raw.length : found
      const next = Math.min(lineEnd + 1, raw.length)
      if (lineEnd === at || (lineEnd === at + 1 && raw.at(at) === cr)) {
        this.headerEnd = next
        return
      }
      if (endsBefore?.(at, lineEnd)) {
        this.headerEnd = at
        return
      }
      if (at > stopAt || this.#fieldCount > maxFields) this.isTruncated = true
      if (!this.isTruncated) {
        const first = raw.at(at)
        const isContinuation = first === space || first === tab
        if (!isContinuation) ranges = this.#openField(at, lineEnd)
        else if (ranges !== null) ranges[ranges.length - 1] = lineEnd
      }
      at = next
    }
    this.headerEnd = raw.length
  }

  #openField(lineStart: number, lineEnd: number): number[] | null {
    const fieldName = nameOf(this.#raw, lineStart, lineEnd)
    if (fieldName === null) return null
    const nameLength = fieldName.length
    const name = fieldName.trimEnd().toLowerCase()
    const ranges = this.#fields.get(name) ?? []
    if (ranges.length === 0) this.#fields.set(name, ranges)
    ranges.push(lineStart + nameLength + 1, lineEnd)
    this.#fieldCount++
    return ranges
  }

  count(name: string): number {
    return (this.#fields.get(name.toLowerCase())?.length ?? 0) / 2
  }

  values(name: string): string[] {
    const ranges = this.#fields.get(name.toLowerCase()) ?? []
    return ranges.flatMap((start, index) =>
      index % 2 === 0 ? [readValue(this.#raw, start, ranges[index + 1]!)] : [],
    )
  }

  first(name: string): string | null {
    const ranges = this.#fields.get(name)
    return ranges === undefined ? null : readValue(this.#raw, ranges[0]!, ranges[1]!)
  }
}

/** The text before the colon of a line, as Latin-1. Null if the line begins no field. */
export function nameOf(raw: Bytes, lineStart: number, lineEnd: number): string | null {
  const line = raw.toString('latin1', lineStart, Math.min(lineEnd, lineStart + maxNameBytes))
  const length = line.indexOf(':')
  return length <= 0 ? null : line.slice(0, length)
}

/** A field's value after its colon, unfolded and trimmed, without decoding encoded words. Reads up to 256 KiB. */
export function readValue(raw: Bytes, start: number, end: number): string {
  const value = decodeText(raw.subarray(start, Math.min(end, start + maxValueBytes)), null)
  // RFC 5322 2.2.3: folded lines are one line. White space around the fold becomes one space.
  if (!value.includes('\n')) return value.trim()
  return value
    .split('\n')
    .map((line) => line.trim())
    .join(' ')
    .trim()
}
