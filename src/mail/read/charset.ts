// From bytes in whatever charset a mail names to a well-formed string, without ever failing.
import { isAscii, isUtf8 } from 'node:buffer'
import { TextDecoder } from 'node:util'
import iconv from 'iconv-lite'
import { charsetLabels } from './charset-labels.ts'

const decoders = new Map<string, TextDecoder>()
// iconv-lite reads its table with the first question.
const iconvEncodings = iconv.encodingExists('utf-8') && iconv.encodings ? iconv.encodings : {}

/**
 * The text of `bytes`: in the charset named, by its WHATWG label or else as iconv-lite knows it. Where none is named,
 * or one that nobody knows, UTF-8 if it is that, and Windows-1252 if not. What cannot be decoded becomes U+FFFD.
 */
export function decodeText(bytes: Buffer, charset: string | null): string {
  if (charset === null || isAsciiSuperset(charset)) {
    if (isAscii(bytes)) return bytes.toString('latin1')
    if (isUtf8(bytes)) return bytes.toString('utf8')
    return decoderOf('windows-1252').decode(bytes)
  }
  if (/^utf-?8$/i.test(charset)) return bytes.toString('utf8')
  const label = charset.toLowerCase()
  if (isIso2022Jp(label)) return decoderOf(label).decode(withoutIdleEscapes(bytes))
  if (charsetLabels.has(label)) return decoderOf(label).decode(bytes)
  return isKnownToIconv(label) ? iconv.decode(bytes, label) : decodeText(bytes, null)
}

/** The same text with NUL and lone surrogates, which no JSON reader or database takes, as U+FFFD. */
export function wellFormed(text: string): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed()
  return whole.includes('\0') ? whole.replaceAll('\0', '\uFFFD') : whole
}

/**
 * The text of a header field as one line that can stand in another header: each line end, control character and lone
 * surrogate is a space. What an encoded word hides would otherwise begin a field of the sender's choice in an answer.
 */
export function oneLine(text: string): string {
  return text.replace(/\r\n|[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/gu, ' ')
}

/** The start of the text, of `max` UTF-16 units at most, without the first half of a character that is cut. */
export function startOf(text: string, max: number): string {
  return text.length <= max ? text : text.slice(0, max).replace(/[\ud800-\udbff]$/, '')
}

/** The start of the text, of `maxBytes` in UTF-8 at most; the text itself where that is all of it. */
export function startInBytes(text: string, maxBytes: number): string {
  if (3 * text.length <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text
  const bytes = Buffer.from(text)
  let end = maxBytes
  while ((bytes[end]! & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}

/** The bytes that are read as this text where nothing else is known; null where no such bytes are. */
export function windows1252Bytes(text: string): Buffer | null {
  const bytes = Buffer.allocUnsafe(text.length)
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    const byte = code < 0x80 ? code : windows1252.get(code)
    if (byte === undefined) return null
    bytes[at] = byte
  }
  return bytes
}

/** Mail says US-ASCII, or that the charset is unknown, and means anything: such labels promise nothing. */
function isAsciiSuperset(charset: string): boolean {
  return /^(?:us-ascii|ascii|unknown-8bit|x-unknown|unknown|default|)$/i.test(charset)
}

const isIso2022Jp = (label: string) => label === 'iso-2022-jp' || label === 'csiso2022jp'

const escapes = String.raw`\x1b(?:\([BIJ]|\$[@B])`
const idleEscape = new RegExp(`${escapes}(?=${escapes})`, 'g')

/**
 * ISO-2022-JP without the escapes that another follows at once. The Encoding Standard has U+FFFD for them, and mail is
 * full of them: an encoded word begins and ends in ASCII (RFC 2047 3), so that neighbours that are joined meet in two.
 */
function withoutIdleEscapes(bytes: Buffer): Buffer {
  const text = bytes.toString('latin1')
  const needed = text.replace(idleEscape, '')
  return needed.length === text.length ? bytes : Buffer.from(needed, 'latin1')
}

/** iconv-lite and TextDecoder throw for a name that nobody knows: a megabyte of such names would take seconds. */
function isKnownToIconv(label: string): boolean {
  const name = iconv._canonicalizeEncoding(label)
  // These are no charsets: bytes would be written out as digits, twice as long.
  return name in iconvEncodings && name !== 'hex' && name !== 'base64'
}

/** Of one of the labels of `charsetLabels`. */
function decoderOf(label: string): TextDecoder {
  const known = decoders.get(label)
  if (known !== undefined) return known
  const decoder = new TextDecoder(label, { ignoreBOM: true })
  decoders.set(label, decoder)
  return decoder
}

const upperHalf = Buffer.from(Array.from({ length: 128 }, (_, index) => 0x80 + index))
const windows1252 = new Map(
  Array.from(decoderOf('windows-1252').decode(upperHalf), (character, index) => [
    character.charCodeAt(0),
    0x80 + index,
  ]),
)
