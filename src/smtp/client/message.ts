// A message as the client sends it: the extensions it needs, and its bytes for DATA, copied only if a dot must be doubled.
import { isAscii } from 'node:buffer'

const lineAndDot = Buffer.from('\r\n.')
const lineEnd = Buffer.from('\r\n')
const dot = 46

/** The final bytes of a message. Caches the properties that several transactions need. */
export class OutgoingMessage {
  readonly bytes: Buffer
  #isEightBit: boolean | null = null
  #dotStuffed: Buffer | null = null

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  get isEightBit(): boolean {
    return (this.#isEightBit ??= hasEightBit(this.bytes))
  }

  get dotStuffed(): Buffer {
    return (this.#dotStuffed ??= dotStuffed(this.bytes))
  }
}

/** True if the message has octets above 127, so that it needs a peer with 8BITMIME. */
export function hasEightBit(message: Buffer): boolean {
  return !isAscii(message)
}

/** Returns the bytes to send after DATA's 354 and before the final dot: dots doubled, ended by CRLF. */
export function dotStuffed(message: Buffer): Buffer {
  const offsets = stuffedOffsets(message)
  const ended = message.length === 0 || message.subarray(-2).equals(lineEnd)
  if (offsets.length === 0 && ended) return message
  const stuffed = Buffer.allocUnsafe(message.length + offsets.length + (ended ? 0 : 2))
  let from = 0
  let written = 0
  for (const offset of offsets) {
    written += message.copy(stuffed, written, from, offset)
    stuffed[written++] = dot
    from = offset
  }
  written += message.copy(stuffed, written, from)
  if (!ended) lineEnd.copy(stuffed, written)
  return stuffed
}

/** Returns the offsets of the lines that begin with a dot. */
function stuffedOffsets(message: Buffer): number[] {
  // RFC 5321 4.5.2: a line that begins with a period gets one more at its beginning.
  const offsets = message[0] === dot ? [0] : []
  for (let at = message.indexOf(lineAndDot); at >= 0; at = message.indexOf(lineAndDot, at + 2))
    offsets.push(at + 2)
  return offsets
}
