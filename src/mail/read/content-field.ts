// Parses Content-Type and Content-Disposition into a value and parameters, with RFC 2231 and RFC 2047 decoded.
import { decodeText } from './charset.ts'
import { withoutComments } from './comments.ts'
import { decodeEncodedWords } from './encoded-word.ts'
import { hexByte } from './transfer-encoding.ts'

export interface ContentField {
  /** `text/plain`, `attachment` …, in lower case. Empty if the field has none. */
  value: string
  /** Names in lower case. */
  parameters: Map<string, string>
}

const maxField = 64 * 1024
const maxParameters = 200

/** Reads the field leniently. Never throws, and reads its first 64 KiB in linear time. */
export function parseContentField(field: string): ContentField {
  // RFC 2045 5.1: comments may occur between any two tokens.
  const segments = splitSegments(withoutComments(field.slice(0, maxField)))
  const pieces = new Map<string, string>()
  for (const segment of segments.slice(1)) {
    const sign = segment.indexOf('=')
    const name = (sign < 0 ? segment : segment.slice(0, sign)).trim().toLowerCase()
    const written = segment.slice(sign + 1).trim()
    if (sign > 0 && isName(name) && isValueOf(name, written) && !pieces.has(name))
      pieces.set(name, unquote(written))
  }
  return { value: (segments[0] ?? '').replace(/\s+/g, '').toLowerCase(), parameters: joinPieces(pieces) }
}

// RFC 2231 7: asterisks follow the name and do not belong to it.
function isName(name: string): boolean {
  return name !== '' && !name.startsWith('*')
}

// RFC 2045 5.1: a value is a token of at least one character, or a quoted string.
function isValueOf(name: string, written: string): boolean {
  // RFC 2231 7: a section of a value may be empty.
  return written !== '' || /\*\d/.test(name)
}

// QUIRK: some programs leave out the semicolon before a parameter (mime-stalwart, malformed/017).
const nextParameter = /\s{1,100}[a-z0-9*-]{1,40}\s?=/iy

/** Splits the field at each semicolon outside quotes, and before a parameter whose semicolon is missing. */
function splitSegments(field: string): string[] {
  const segments: string[] = []
  let start = 0
  let isQuoted = false
  for (let at = 0; at < field.length && segments.length < maxParameters; at++) {
    const character = field[at]
    if (character === '\\' && isQuoted) at++
    else if (character === '"') isQuoted = !isQuoted
    else if (!isQuoted && (character === ';' || isMissingSemicolon(field, at))) {
      segments.push(field.slice(start, at))
      start = at + 1
    }
  }
  segments.push(field.slice(start))
  return segments
}

function isMissingSemicolon(field: string, at: number): boolean {
  if (!isSpace(field[at]) || isSpace(field[at - 1]) || field[at - 1] === ';') return false
  nextParameter.lastIndex = at
  return nextParameter.test(field)
}

function isSpace(character: string | undefined): boolean {
  return character === ' ' || character === '\t'
}

function unquote(value: string): string {
  if (!value.startsWith('"')) return value
  const end = value.length > 1 && value.endsWith('"') ? -1 : undefined
  return value.slice(1, end).replace(/\\(.)/gs, '$1')
}

/** RFC 2231 3: `name*0`, `name*1*` … are one value, in the order of their numbers. */
function joinPieces(pieces: Map<string, string>): Map<string, string> {
  const parameters = new Map<string, string>()
  const extended = new Set<string>()
  for (const name of pieces.keys()) {
    const star = name.indexOf('*')
    if (star > 0) extended.add(name.slice(0, star))
    else parameters.set(name, decodeEncodedWords(pieces.get(name)!))
  }
  for (const name of extended) {
    const value = joinExtended(name, pieces)
    if (value !== null) parameters.set(name, value)
  }
  return parameters
}

function joinExtended(name: string, pieces: Map<string, string>): string | null {
  const whole = pieces.get(`${name}*`)
  if (whole !== undefined) {
    const { charset, rest } = splitCharset(whole)
    return decodeText(percentDecoded(rest), charset)
  }
  const chunks: Buffer[] = []
  let charset: string | null = null
  for (let number = 0; number < maxParameters; number++) {
    const plain = pieces.get(`${name}*${number}`)
    const encoded = pieces.get(`${name}*${number}*`)
    if (plain === undefined && encoded === undefined) break
    if (encoded === undefined) chunks.push(Buffer.from(plain!))
    else {
      const split: ReturnType<typeof splitCharset> =
        number === 0 ? splitCharset(encoded) : { charset, rest: encoded }
      charset = split.charset
      chunks.push(percentDecoded(split.rest))
    }
  }
  return chunks.length === 0 ? null : decodeText(Buffer.concat(chunks), charset)
}

// RFC 2231 4: an extended value is charset'language'text.
function splitCharset(value: string): { charset: string | null; rest: string } {
  const first = value.indexOf("'")
  const second = first < 0 ? -1 : value.indexOf("'", first + 1)
  if (second < 0) return { charset: null, rest: value }
  return { charset: value.slice(0, first) || null, rest: value.slice(second + 1) }
}

function percentDecoded(value: string): Buffer {
  const bytes = Buffer.from(value)
  const decoded = Buffer.allocUnsafe(bytes.length)
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    const escaped = bytes[at] === 0x25 ? hexByte(bytes[at + 1], bytes[at + 2]) : -1
    decoded[length++] = escaped < 0 ? bytes[at]! : escaped
    if (escaped >= 0) at += 2
  }
  return decoded.subarray(0, length)
}
