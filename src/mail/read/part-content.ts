// Decodes the content of a body part, piece by piece.
import type { ByteRange } from './bytes.ts'
import type { MimePart } from './mime-parts.ts'
import { isDecodable, type TransferEncoding, transferEncoding } from './transfer-encoding.ts'
import { transferDecoder } from './transfer-stream.ts'
import { isUuencode } from './uuencode.ts'

/** The actual encoding of the body: the declared one if the body can have it, else `none`. */
export function encodingOf({ contentType, header, body }: MimePart): TransferEncoding {
  // RFC 2045 6.4: a multipart has no transfer encoding but 7bit, 8bit or binary.
  if (contentType.startsWith('multipart/')) return 'none'
  const encoding = transferEncoding(header.first('content-transfer-encoding') ?? '')
  if (encoding === 'uuencode') return isUuencode(body.pieces()) ? encoding : 'none'
  return isDecodable(body, encoding) ? encoding : 'none'
}

/** The whole decoded content of a body, in pieces. */
export function* contentOf(body: ByteRange, encoding: TransferEncoding): Generator<Buffer> {
  const decoder = transferDecoder(encoding)
  for (const piece of body.pieces()) yield decoder.decode(piece)
  yield decoder.end()
}

/** The first `maxBytes` of the content. `isMore`: there may be more. */
export function startOfContent(part: MimePart, maxBytes: number): { bytes: Buffer; isMore: boolean } {
  // No encoding takes more than three bytes per byte. So a body that decodes to nothing is not read to its end.
  const body = part.body.upTo(3 * maxBytes)
  const pieces: Buffer[] = []
  let length = 0
  for (const piece of contentOf(body, encodingOf({ ...part, body }))) {
    pieces.push(piece)
    length += piece.length
    if (length > maxBytes) break
  }
  const bytes = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
  return { bytes: bytes.subarray(0, maxBytes), isMore: length > maxBytes || body.length < part.body.length }
}
