// Takes a message as it comes apart into its header, given once when it is whole, and its body, given as it comes.

const maxHeaderBytes = 256 * 1024
const emptyLine = Buffer.from('\r\n\r\n')
const lineEnd = Buffer.from('\r\n')

export interface SplitMessage {
  /** All lines up to the empty one, each with its line end; null where they are more than 256 KiB: then no body comes. */
  header(bytes: Buffer | null): void
  /** What follows the empty line, in pieces. */
  body(chunk: Buffer): void
}

/** Lines end with CRLF, as the SMTP server makes sure. Holds the chunks that the header stands in. */
export class HeaderSplit {
  readonly #parts: SplitMessage
  #held: Buffer[] = []
  #heldBytes = 0
  /** The end of what is held, in which the empty line may have begun. */
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

  /** The message is whole: without an empty line all of it is header. */
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

/** The pieces as one; a single one as it is, for a copy of the first 64 KiB of a mail costs more than to search it. */
function joined(pieces: Buffer[]): Buffer {
  const [first, ...others] = pieces.filter(({ length }) => length > 0)
  return first && others.length === 0 ? first : Buffer.concat(pieces)
}

interface HeaderEnd {
  length: number
  bodyStart: number
}

/** RFC 5322 2.1: the first empty line; it may be the first line of all. `start` is where the bytes stand in the message. */
function endOfHeader(bytes: Buffer, start: number): HeaderEnd | null {
  if (start === 0 && bytes.subarray(0, 2).equals(lineEnd)) return { length: 0, bodyStart: 2 }
  const at = bytes.indexOf(emptyLine)
  return at < 0 ? null : { length: start + at + 2, bodyStart: start + at + 4 }
}
