// Splits an incoming message into its header, passed on once complete, and its body, passed on as it arrives.

const maxHeaderBytes = 256 * 1024
const emptyLine = Buffer.from('\r\n\r\n')
const lineEnd = Buffer.from('\r\n')

export interface SplitMessage {
  /** All lines up to the empty one, each with its line end. Null if they exceed 256 KiB: then no body follows. */
  header(bytes: Buffer | null): void
  /** The bytes after the empty line, in chunks. */
  body(chunk: Buffer): void
}

/** Expects lines that end with CRLF, which the SMTP server guarantees. Holds the chunks that contain the header. */
export class HeaderSplit {
  readonly #parts: SplitMessage
  #held: Buffer[] = []
  #heldBytes = 0
  /** The end of the held bytes, in which the empty line may have begun. */
  #tail: Buffer = Buffer.alloc(0)
  #state: 'header' | 'body' | 'ended' = 'header'

  constructor(parts: SplitMessage) {
    this.#parts = parts
  }

  write(chunk: Buffer): void {
    if (this.#state === 'body') this.#parts.body(chunk)
    if (this.#state !== 'header') return
    const searched = joined([this.#tail, chunk])
    const before = this.#heldBytes - this.#tail.length
    const headerEnd = endOfHeader(searched, before)
    this.#held.push(chunk)
    this.#heldBytes += chunk.length
    this.#tail = searched.subarray(Math.max(0, searched.length - emptyLine.length + 1))
    if (headerEnd === null && this.#heldBytes <= maxHeaderBytes) return
    this.#giveHeader(headerEnd)
  }

  /** Ends the message. Without an empty line all of it is header. */
  end(): void {
    if (this.#state === 'header') this.#giveHeader({ length: this.#heldBytes, bodyStart: this.#heldBytes })
    this.#state = 'ended'
  }

  #giveHeader(end: HeaderEnd | null): void {
    const held = joined(this.#held.splice(0))
    const isWhole = end !== null && end.length <= maxHeaderBytes
    this.#state = isWhole ? 'body' : 'ended'
    this.#parts.header(isWhole ? held.subarray(0, end.length) : null)
    if (isWhole && end.bodyStart < held.length) this.#parts.body(held.subarray(end.bodyStart))
  }
}

/** Joins the pieces. Returns a single piece uncopied: copying the first 64 KiB of a mail costs more than searching them. */
function joined(pieces: Buffer[]): Buffer {
  const [first, ...others] = pieces.filter(({ length }) => length > 0)
  return first && others.length === 0 ? first : Buffer.concat(pieces)
}

interface HeaderEnd {
  length: number
  bodyStart: number
}

/**
 * RFC 5322 2.1: the header ends at the first empty line, which may be the very first line. `start` is the offset of `bytes`
 * in the message.
 */
function endOfHeader(bytes: Buffer, start: number): HeaderEnd | null {
  if (start === 0 && bytes.subarray(0, 2).equals(lineEnd)) return { length: 0, bodyStart: 2 }
  const at = bytes.indexOf(emptyLine)
  return at < 0 ? null : { length: start + at + 2, bodyStart: start + at + 4 }
}
