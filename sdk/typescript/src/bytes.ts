// Bytes: reading them from any source, within a limit, and joining them.
import { PosthornError } from './errors.ts'

/** Returns the bytes of an answer after decompression. Throws `too_large` over the limit. */
export async function readBytes({ body, status }: Response, maxBytes: number): Promise<Uint8Array> {
  if (!body) return new Uint8Array()
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of iterate(body)) {
    length += piece.length
    if (length > maxBytes)
      throw new PosthornError(`The answer has more than ${maxBytes} bytes.`, { code: 'too_large', status })
    pieces.push(piece)
  }
  return joinBytes(pieces)
}

/** Iterates over a stream, also in browsers whose streams are no iterables. Cancels it if the loop ends early. */
export async function* iterate(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  const reader = stream.getReader()
  let isDone = false
  try {
    while (!isDone) {
      const { done, value } = await reader.read()
      isDone = done
      if (!done) yield value
    }
  } finally {
    if (!isDone) await reader.cancel().catch(() => {})
  }
}

export function joinBytes(pieces: Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let length = 0
  for (const piece of pieces) {
    bytes.set(piece, length)
    length += piece.length
  }
  return bytes
}
