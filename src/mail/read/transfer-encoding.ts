// The names of transfer encodings, and a decoder for quoted-printable as real mail contains it, in linear time.
import type { ByteRange } from './bytes.ts'

const equals = 0x3d
const lf = 0x0a
const cr = 0x0d

/** The encoding of a body's bytes. `none`: they are unchanged. */
export type TransferEncoding = 'base64' | 'quoted-printable' | 'uuencode' | 'none'

/** The encoding that a Content-Transfer-Encoding names. An unknown name means `none`. */
export function transferEncoding(field: string): TransferEncoding {
  // RFC 2045 6.1: the names are case-insensitive.
  const name = field.toLowerCase()
  if (name === 'base64' || name === 'quoted-printable') return name
  // QUIRK: no RFC defines uuencode. Programs from before MIME use several names (RFC 2045 6.3 leaves them the x-).
  return /^(?:x-)?uu(?:e|encode)$/.test(name) ? 'uuencode' : 'none'
}

/** Decodes quoted-printable. An `=` that starts no valid escape stays in the text. */
export function decodeQuotedPrintable(body: Buffer): Buffer {
  return decodeQuoted(body, 0).decoded
}

/** This many bytes from an `=` on suffice to recognize what it starts. */
export const maxEscapeBytes = 104

/** Decodes up to the first `=` with fewer than `aheadBytes` bytes from it on. `usedBytes` is the number of bytes decoded. */
export function decodeQuoted(body: Buffer, aheadBytes: number): { decoded: Buffer; usedBytes: number } {
  let equalsAt = body.indexOf(equals)
  if (equalsAt < 0) return { decoded: body, usedBytes: body.length }
  const decoded = Buffer.allocUnsafe(body.length)
  let length = 0
  let at = 0
  while (equalsAt >= 0 && body.length - equalsAt >= aheadBytes) {
    if (equalsAt > at) length += body.copy(decoded, length, at, equalsAt)
    const byte = hexByte(body[equalsAt + 1], body[equalsAt + 2])
    if (byte >= 0) {
      decoded[length++] = byte
      at = equalsAt + 3
    } else {
      const afterBreak = softLineBreakEnd(body, equalsAt + 1)
      if (afterBreak < 0) decoded[length++] = equals
      at = afterBreak < 0 ? equalsAt + 1 : afterBreak
    }
    equalsAt = body[at] === equals ? at : body.indexOf(equals, at)
  }
  const usedBytes = equalsAt < 0 ? body.length : equalsAt
  length += body.copy(decoded, length, at, usedBytes)
  return { decoded: decoded.subarray(0, length), usedBytes }
}

/** The byte of two hexadecimal digits, or a negative number if they are no digits. */
export function hexByte(high: number | undefined, low: number | undefined): number {
  const value = hexDigit(high) * 16 + hexDigit(low)
  return value >= 0 ? value : -1
}

/** Returns -1000 for no digit, so that one sum shows whether both are digits. */
function hexDigit(code: number | undefined): number {
  if (code === undefined) return -1000
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const upper = code & 0xdf
  return upper >= 0x41 && upper <= 0x46 ? upper - 0x37 : -1000
}

const maxPaddingBytes = 100

// RFC 2045 6.7: white space after the = of a soft line break was added in transit and is removed with it.
function softLineBreakEnd(body: Buffer, start: number): number {
  let at = start
  while (at - start < maxPaddingBytes && (body[at] === 0x20 || body[at] === 0x09)) at++
  if (body[at] === cr) at++
  if (at >= body.length) return body.length
  return body[at] === lf ? at + 1 : -1
}

/** Whether `body` can have this encoding. Base64 must begin with a character of its alphabet. */
export function isDecodable(body: ByteRange, encoding: TransferEncoding): boolean {
  if (encoding !== 'base64') return true
  const start = body.first(maxPaddingBytes).toString('latin1').trimStart()
  return start === '' || /^[A-Za-z0-9+/=_-]/.test(start)
}

/** Up to this many paddings of a base64 body are read. Each costs as much as 100 characters: 25 MB of them take 5 s. */
export const maxPaddings = 200_000
