// Decodes transfer encodings piece by piece, with the same result wherever a body is cut, so none is held as a whole.
import { decodeQuoted, maxEscapeBytes, maxPaddings, type TransferEncoding } from './transfer-encoding.ts'
import { UuDecoder } from './uuencode.ts'

/** Takes a body's pieces in order. Returns decoded bytes as soon as they are known, and the rest from `end`. */
export interface TransferDecoder {
  decode(piece: Buffer): Buffer
  end(): Buffer
}

export function transferDecoder(encoding: TransferEncoding): TransferDecoder {
  if (encoding === 'base64') return new Base64Decoder()
  if (encoding === 'uuencode') return new UuDecoder()
  return encoding === 'quoted-printable' ? new QuotedPrintableDecoder() : asItIs
}

/** Decodes `source` while holding no more than one piece of it. */
export async function* decodeStream(
  source: AsyncIterable<Buffer>,
  encoding: TransferEncoding,
): AsyncGenerator<Buffer> {
  const decoder = transferDecoder(encoding)
  for await (const piece of source) yield decoder.decode(piece)
  yield decoder.end()
}

const nothing: Buffer = Buffer.alloc(0)
const asItIs: TransferDecoder = { decode: (piece) => piece, end: () => nothing }

class QuotedPrintableDecoder implements TransferDecoder {
  #rest = nothing

  decode(piece: Buffer): Buffer {
    const body = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece])
    const { decoded, usedBytes } = decodeQuoted(body, maxEscapeBytes)
    this.#rest = body.subarray(usedBytes)
    return decoded
  }

  end(): Buffer {
    return decodeQuoted(this.#rest, 0).decoded
  }
}

/** A longer unfinished line is not held back. Its characters are decoded in groups. */
const maxLineBytes = 1000

/**
 * QUIRK: some mailers join pieces that were each padded, or add a remark (mime-stalwart, thirdparty/002). Padded pieces
 * are decoded one after the other. After a padded piece, an end without padding counts in whole groups of four.
 */
class Base64Decoder implements TransferDecoder {
  /** Text of an incomplete group or line, without padding. */
  #open = ''
  #hasBytes = false
  #hasPadded = false
  #paddings = 0

  decode(piece: Buffer): Buffer {
    const text = piece.toString('latin1')
    const decoded: Buffer[] = []
    for (let at = 0; at < text.length && this.#paddings < maxPaddings; ) {
      const padding = text.indexOf('=', at)
      decoded.push(this.#decodeWhole(text.slice(at, padding < 0 ? text.length : padding)))
      if (padding < 0) break
      decoded.push(this.#endPiece())
      at = padding + 1
    }
    return decoded.length === 1 ? decoded[0]! : Buffer.concat(decoded)
  }

  end(): Buffer {
    if (this.#paddings >= maxPaddings) return nothing
    const last = Buffer.from(this.#open, 'base64')
    return this.#hasPadded ? last.subarray(0, last.length - (last.length % 3)) : last
  }

  /** The bytes of the complete groups, except those of the last line. */
  #decodeWhole(text: string): Buffer {
    const known = this.#open + text
    const linesEnd = known.lastIndexOf('\n') + 1
    const bytes =
      known.length - linesEnd <= maxLineBytes ? this.#decodeLines(known, linesEnd) : this.#decodeGroups(known)
    if (bytes.length > 0) this.#hasBytes = true
    return bytes
  }

  /** Decodes lines of whole groups, which nearly all bodies have. Decoders alone: 2 GB/s, and 0.3 GB/s by groups. */
  #decodeLines(known: string, linesEnd: number): Buffer {
    // Two extra characters leave one extra byte if whole groups came before them, and only then.
    const bytes = Buffer.from(`${known.slice(0, linesEnd)}AA`, 'base64')
    if (bytes.length % 3 !== 1) return this.#decodeGroups(known)
    this.#open = known.slice(linesEnd)
    return bytes.subarray(0, bytes.length - 1)
  }

  #decodeGroups(known: string): Buffer {
    const characters = known.replace(/[^A-Za-z0-9+/_-]/g, '')
    const whole = characters.length - (characters.length % 4)
    this.#open = characters.slice(whole)
    return Buffer.from(characters.slice(0, whole), 'base64')
  }

  #endPiece(): Buffer {
    const bytes = Buffer.from(this.#open, 'base64')
    this.#open = ''
    this.#paddings++
    this.#hasPadded ||= this.#hasBytes || bytes.length > 0
    return bytes
  }
}
