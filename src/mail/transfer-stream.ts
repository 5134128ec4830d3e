// Transfer encodings undone piece by piece, with the same result as at once, for what is too large to hold.
import { decodeQuoted, longestEscape, mostPaddings, type TransferEncoding } from './transfer-encoding.ts'

/** Decodes `source` as `decodeTransferEncoding` does a body that is what it says; holds no more than a piece of it. */
export function decodeStream(
  source: AsyncIterable<Buffer>,
  encoding: TransferEncoding,
): AsyncIterable<Buffer> {
  if (encoding === 'base64') return decodeBase64(source)
  return encoding === 'quoted-printable' ? decodeQuotedPrintable(source) : source
}

async function* decodeQuotedPrintable(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const piece of source) {
    const body = rest.length === 0 ? piece : Buffer.concat([rest, piece])
    const { decoded, usedBytes } = decodeQuoted(body, longestEscape)
    yield decoded
    rest = body.subarray(usedBytes)
  }
  yield decodeQuoted(rest, 0).decoded
}

async function* decodeBase64(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const decoder = new Base64Decoder()
  for await (const piece of source) {
    const decoded = decoder.decode(piece.toString('latin1'))
    if (decoded.length > 0) yield decoded
    if (decoder.isFull) return
  }
  const last = decoder.end()
  if (last.length > 0) yield last
}

/** Pieces that were each padded follow each other; after one of them, an end without padding counts in whole groups. */
class Base64Decoder {
  /** Characters of a group that is not complete. */
  #open = ''
  #hasBytes = false
  #hasPadded = false
  #paddings = 0

  get isFull(): boolean {
    return this.#paddings >= mostPaddings
  }

  decode(text: string): Buffer {
    const decoded: Buffer[] = []
    for (let at = 0; at < text.length && !this.isFull; ) {
      const padding = text.indexOf('=', at)
      decoded.push(this.#decodeWhole(text.slice(at, padding < 0 ? text.length : padding)))
      if (padding < 0) break
      decoded.push(this.#endPiece())
      at = padding + 1
    }
    return Buffer.concat(decoded)
  }

  end(): Buffer {
    return this.isFull || this.#hasPadded ? Buffer.alloc(0) : Buffer.from(this.#open, 'base64')
  }

  #decodeWhole(text: string): Buffer {
    const known = this.#open + text.replace(/[^A-Za-z0-9+/_-]/g, '')
    const whole = known.length - (known.length % 4)
    this.#open = known.slice(whole)
    const bytes = Buffer.from(known.slice(0, whole), 'base64')
    if (bytes.length > 0) this.#hasBytes = true
    return bytes
  }

  #endPiece(): Buffer {
    const bytes = Buffer.from(this.#open, 'base64')
    this.#open = ''
    this.#paddings++
    this.#hasPadded ||= this.#hasBytes || bytes.length > 0
    return bytes
  }
}
