// Decodes bytes in any charset that a mail names to a well-formed string, without ever throwing.
import { isAscii, isUtf8 } from 'node:buffer'
import { TextDecoder } from 'node:util'
import iconv from 'iconv-lite'
import { charsetLabels } from './charset-labels.ts'

const decoders = new Map<string, TextDecoder>()
// iconv-lite loads its table on the first query.
const iconvEncodings = iconv.encodingExists('utf-8') && iconv.encodings ? iconv.encodings : {}

/**
 * Decodes `bytes` in the named charset, by its WHATWG label or else as iconv-lite knows it. Without a known charset,
 * valid UTF-8 is read as UTF-8 and anything else as Windows-1252. Bytes that cannot be decoded become U+FFFD.
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

/** Replaces NUL and lone surrogates with U+FFFD, because no JSON reader or database accepts them. */
export function wellFormed(text: string): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed()
  return whole.includes('\0') ? whole.replaceAll('\0', '\uFFFD') : whole
}

/**
 * The text of a header field as one line that is safe in another header. Each line end, control character and lone
 * surrogate becomes a space. Otherwise an encoded word could start a field of the sender's choice in an answer.
 */
export function oneLine(text: string): string {
  return text.replace(/\r\n|[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/gu, ' ')
}

/** The first `maxChars` UTF-16 units of the text at most, without half of a cut character. */
export function startOf(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : text.slice(0, maxChars).replace(/[\ud800-\udbff]$/, '')
}

/** The first `maxBytes` UTF-8 bytes of the text at most, or the text itself if it fits. */
export function startInBytes(text: string, maxBytes: number): string {
  if (3 * text.length <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text
  const bytes = Buffer.from(text)
  let end = maxBytes
  while ((bytes[end]! & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}

/** The bytes that decode to this text if the charset is unknown. Null if there are no such bytes. */
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

/** Mail labeled US-ASCII or unknown may use any charset, so such labels are ignored. */
function isAsciiSuperset(charset: string): boolean {
  return /^(?:us-ascii|ascii|unknown-8bit|x-unknown|unknown|default|)$/i.test(charset)
}

const isIso2022Jp = (label: string) => label === 'iso-2022-jp' || label === 'csiso2022jp'

const escapes = String.raw`\x1b(?:\([BIJ]|\$[@B])`
const idleEscape = new RegExp(`${escapes}(?=${escapes})`, 'g')

/**
 * Drops each ISO-2022-JP escape that another one follows directly. The Encoding Standard decodes such an escape to
 * U+FFFD. Mail has many of them: an encoded word begins and ends in ASCII (RFC 2047 3), so joined neighbours meet with
 * two escapes.
 */
function withoutIdleEscapes(bytes: Buffer): Buffer {
  const text = bytes.toString('latin1')
  const needed = text.replace(idleEscape, '')
  return needed.length === text.length ? bytes : Buffer.from(needed, 'latin1')
}

/** iconv-lite and TextDecoder throw on unknown names. A megabyte of such names would take seconds. */
function isKnownToIconv(label: string): boolean {
  const name = iconv._canonicalizeEncoding(label)
  // `hex` and `base64` are no charsets. They would write bytes out as digits, up to twice as long.
  return name in iconvEncodings && name !== 'hex' && name !== 'base64'
}

/** `label` must be one of `charsetLabels`. */
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
