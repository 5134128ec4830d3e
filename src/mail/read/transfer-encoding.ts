// Content-Transfer-Encoding: which there are, and quoted-printable undone as mail really carries it, in linear time.
import type { ByteRange } from './bytes.ts'

const equals = 0x3d
const lf = 0x0a
const cr = 0x0d

/** How bytes are written in a body; `none` where they stand as they are. */
export type TransferEncoding = 'base64' | 'quoted-printable' | 'uuencode' | 'none'

/** The encoding that a Content-Transfer-Encoding names. One that nobody knows changes nothing. */
export function transferEncoding(field: string): TransferEncoding {
  // RFC 2045 6.1: the names compare without case.
  const name = field.toLowerCase()
  if (name === 'base64' || name === 'quoted-printable') return name
  // QUIRK: no RFC has it; programs from before MIME write it under several names (RFC 2045 6.3 leaves them the x-).
  return /^(?:x-)?uu(?:e|encode)$/.test(name) ? 'uuencode' : 'none'
}

/** Quoted-printable undone; an `=` that starts nothing valid stays in the text. */
export function decodeQuotedPrintable(body: Buffer): Buffer {
  return decodeQuoted(body, 0).decoded
}

/** What an `=` is the start of shows within so many bytes. */
export const maxEscape = 104

/** Decodes up to the first `=` with fewer than `ahead` bytes from it on; `usedBytes` says how far that was. */
export function decodeQuoted(body: Buffer, ahead: number): { decoded: Buffer; usedBytes: number } {
  let equalsAt = body.indexOf(equals)
  if (equalsAt < 0) return { decoded: body, usedBytes: body.length }
  const decoded = Buffer.allocUnsafe(body.length)
  let length = 0
  let at = 0
  while (equalsAt >= 0 && body.length - equalsAt >= ahead) {
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

/** The byte that two hexadecimal digits write; negative where they are none. */
export function hexByte(high: number | undefined, low: number | undefined): number {
  const value = hexDigit(high) * 16 + hexDigit(low)
  return value >= 0 ? value : -1
}

/** -1000 where it is no digit, so that one sum tells whether both are. */
function hexDigit(code: number | undefined): number {
  if (code === undefined) return -1000
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const upper = code & 0xdf
  return upper >= 0x41 && upper <= 0x46 ? upper - 0x37 : -1000
}

const maxPadding = 100

// RFC 2045 6.7: white space after the = of a soft line break was added on the way and is removed with it.
function softLineBreakEnd(body: Buffer, start: number): number {
  let at = start
  while (at - start < maxPadding && (body[at] === 0x20 || body[at] === 0x09)) at++
  if (body[at] === cr) at++
  if (at >= body.length) return body.length
  return body[at] === lf ? at + 1 : -1
}

/** Whether `body` can be what its encoding says: base64 that does not even begin in its alphabet is none. */
export function isDecodable(body: ByteRange, encoding: TransferEncoding): boolean {
  if (encoding !== 'base64') return true
  const start = body.first(maxPadding).toString('latin1').trimStart()
  return start === '' || /^[A-Za-z0-9+/=_-]/.test(start)
}

/** Paddings of a base64 body that are looked behind; each costs as much as a hundred characters: 25 MB of nothing else would
 * take 5 s. */
export const maxPaddings = 200_000
