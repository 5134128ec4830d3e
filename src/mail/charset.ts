// From bytes in whatever charset a mail names to a well-formed string, without ever failing.
import { isAscii, isUtf8 } from 'node:buffer'
import { TextDecoder } from 'node:util'
import iconv from 'iconv-lite'

const mostDecoders = 100
const decoders = new Map<string, TextDecoder | null>()

/**
 * The text of `bytes`: in the charset named, by its WHATWG label or else as iconv-lite knows it. Where none is named,
 * or one that nobody knows, UTF-8 if it is that, and Windows-1252 if not. What cannot be decoded becomes U+FFFD.
 */
export function decodeText(bytes: Buffer, charset: string | null): string {
  if (charset === null || isAsciiSuperset(charset)) {
    if (isAscii(bytes)) return bytes.toString('latin1')
    if (isUtf8(bytes)) return bytes.toString('utf8')
    return decoderOf('windows-1252')!.decode(bytes)
  }
  if (/^utf-?8$/i.test(charset)) return bytes.toString('utf8')
  const decoder = decoderOf(charset.toLowerCase())
  if (decoder !== null) return decoder.decode(bytes)
  return iconv.encodingExists(charset) ? iconv.decode(bytes, charset) : decodeText(bytes, null)
}

/** The same text with NUL and lone surrogates, which no JSON reader or database takes, as U+FFFD. */
export function wellFormed(text: string): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed()
  return whole.includes('\0') ? whole.replaceAll('\0', '\uFFFD') : whole
}

/** Mail says US-ASCII, or that the charset is unknown, and means anything: such labels promise nothing. */
function isAsciiSuperset(charset: string): boolean {
  return /^(?:us-ascii|ascii|unknown-8bit|x-unknown|unknown|default|)$/i.test(charset)
}

function decoderOf(label: string): TextDecoder | null {
  const known = decoders.get(label)
  if (known !== undefined) return known
  const decoder = newDecoder(label)
  if (decoders.size < mostDecoders) decoders.set(label, decoder)
  return decoder
}

function newDecoder(label: string): TextDecoder | null {
  try {
    return new TextDecoder(label, { ignoreBOM: true })
  } catch {
    // No WHATWG label: the caller tries iconv-lite next.
    return null
  }
}
