// Encodes the bytes of a body part for transport: 7bit, quoted-printable or base64.

export interface EncodedBody {
  transferEncoding: '7bit' | 'quoted-printable' | 'base64'
  content: Buffer
}

// RFC 5322 2.1.1: lines should be no longer than 78 characters.
const lineChars = 78
// RFC 2045 6.7: encoded lines, also those of base64, are at most 76 characters long.
const encodedLineChars = 76
const cr = 13
const lf = 10
const space = 0x20
const tab = 0x09

/** Encodes text with CRLF line ends, in the shortest form that every mail server passes on unchanged. */
export function encodeText(text: string): EncodedBody {
  const lines = text.includes('\r') ? text.replace(/\r\n?|\n/g, '\r\n') : text.replaceAll('\n', '\r\n')
  if (isSafeAsItIs(lines, lineChars))
    return { transferEncoding: '7bit', content: Buffer.from(lines, 'latin1') }
  const content = Buffer.from(lines)
  // Quoted-printable adds two bytes per encoded byte, base64 a third of all bytes.
  if (countEncoded(content) * 6 > content.length) return encodeBase64(content)
  return { transferEncoding: 'quoted-printable', content: quotedPrintable(content) }
}

export function encodeBase64(content: Buffer): EncodedBody {
  const digits = Buffer.from(content.toString('base64'), 'latin1')
  const wrapped = Buffer.allocUnsafe(digits.length + 2 * Math.ceil(digits.length / encodedLineChars))
  let length = 0
  for (let start = 0; start < digits.length; start += encodedLineChars) {
    length += digits.copy(wrapped, length, start, start + encodedLineChars)
    wrapped[length++] = cr
    wrapped[length++] = lf
  }
  return { transferEncoding: 'base64', content: wrapped }
}

/**
 * Whether text with CRLF line ends can be sent unencoded. It must be ASCII, with lines of at most `maxLineChars`, and
 * contain nothing that clashes with our boundaries or with mailbox files.
 */
export function isSafeAsItIs(text: string, maxLineChars: number): boolean {
  // Checked first, because it fails most often.
  if (!areLinesWithin(text, maxLineChars)) return false
  // RFC 2049 3: mailbox files change a line that begins with "From ". Each boundary of ours begins with "=_".
  if (text.includes('--=_') || text.startsWith('From ') || text.includes('\nFrom ')) return false
  return !/[^\t\r\n\x20-\x7e]/.test(text)
}

function areLinesWithin(text: string, maxLineChars: number): boolean {
  let start = 0
  for (let end = text.indexOf('\r\n'); end >= 0; end = text.indexOf('\r\n', start)) {
    if (end - start > maxLineChars) return false
    start = end + 2
  }
  return text.length - start <= maxLineChars
}

// RFC 2045 6.7: printable bytes, except "=", may stay unencoded.
const isPrintable = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte > 32 && byte < 127 && byte !== 0x3d ? 1 : 0,
)
const isPrintableOrSpace = isPrintable.with(space, 1).with(tab, 1)
const isEncoded = isPrintableOrSpace
  .with(cr, 1)
  .with(lf, 1)
  .map((stays) => 1 - stays)

function countEncoded(content: Buffer): number {
  let count = 0
  for (let index = 0; index < content.length; index++) count += isEncoded[content[index]!]!
  return count
}

const hexDigits = Buffer.from('0123456789ABCDEF')

/** `content` must have only CRLF line ends, which stay line ends. */
function quotedPrintable(content: Buffer): Buffer {
  // Each byte becomes at most three, and 24 bytes need at most one soft line break of three.
  const encoded = Buffer.allocUnsafe(content.length * 3 + Math.ceil(content.length / 24) * 3)
  let length = 0
  let column = 0
  for (let index = 0; index < content.length; index++) {
    // Most bytes are inside a line and stay unencoded. Measured, copying them costs a third of the checks below.
    const runEnd = column > 0 ? endOfRun(content, index, encodedLineChars - 1 - column) : index
    column += runEnd - index
    while (index < runEnd) encoded[length++] = content[index++]!
    if (index === content.length) break
    const byte = content[index]!
    if (byte === cr) {
      encoded[length++] = cr
      encoded[length++] = lf
      index++
      column = 0
      continue
    }
    if (column > encodedLineChars - 4 && !fitsLine(content, index, column)) {
      encoded[length++] = 0x3d
      encoded[length++] = cr
      encoded[length++] = lf
      column = 0
    }
    if (isPrintable[byte] === 1 ? column > 0 || !isUnsafeFirst(byte) : isInnerSpace(content, index)) {
      encoded[length++] = byte
      column += 1
    } else {
      encoded[length++] = 0x3d
      encoded[length++] = hexDigits[byte >> 4]!
      encoded[length++] = hexDigits[byte & 15]!
      column += 3
    }
  }
  return encoded.subarray(0, length)
}

/** The end of the unencoded run from `index` on, at most `maxBytes` long. It excludes a space that may end its line. */
function endOfRun(content: Buffer, index: number, maxBytes: number): number {
  const max = Math.min(index + maxBytes, content.length)
  let end = index
  while (end < max && isPrintableOrSpace[content[end]!] === 1) end++
  return end > index && isPrintable[content[end - 1]!] === 0 ? end - 1 : end
}

function fitsLine(content: Buffer, index: number, column: number): boolean {
  const width = isPrintable[content[index]!] === 1 || isInnerSpace(content, index) ? 1 : 3
  // RFC 2045 6.7: the soft line break's "=" counts, unless this byte ends the line.
  const lineEnds = index + 1 === content.length || content[index + 1] === cr
  return column + width <= (lineEnds ? encodedLineChars : encodedLineChars - 1)
}

// RFC 2045 6.7: white space may stay unencoded, except at the end of a line.
function isInnerSpace(content: Buffer, index: number): boolean {
  const byte = content[index]!
  return (byte === 0x20 || byte === 0x09) && index + 1 < content.length && content[index + 1] !== cr
}

// RFC 2049 3: "F" may begin a line with "From ", and "." may be a whole line. Both are encoded.
function isUnsafeFirst(byte: number): boolean {
  return byte === 0x46 || byte === 0x2e
}
