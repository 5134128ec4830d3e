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

/** Lines end with CRLF, as the SMTP server makes sure. Holds no more than the header. */
export class HeaderSplit {
  readonly #parts: SplitMessage
  #held: Buffer = Buffer.alloc(0)
  #state: 'header' | 'body' | 'ended' = 'header'

  constructor(parts: SplitMessage) {
    this.#parts = parts
  }

  write(chunk: Buffer): void {
    if (this.#state === 'body') this.#parts.body(chunk)
    if (this.#state !== 'header') return
    // The empty line may have begun in what came before.
    const from = Math.max(0, this.#held.length - emptyLine.length + 1)
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    const headerEnd = endOfHeader(this.#held, from)
    if (headerEnd === null && this.#held.length <= maxHeaderBytes) return
    this.#giveHeader(headerEnd)
  }

  /** The message is whole: without an empty line all of it is header. */
  end(): void {
    if (this.#state === 'header')
      this.#giveHeader({ length: this.#held.length, bodyStart: this.#held.length })
    this.#state = 'ended'
  }

  #giveHeader(end: HeaderEnd | null): void {
    const held = this.#held
    this.#held = Buffer.alloc(0)
    const isWhole = end !== null && end.length <= maxHeaderBytes
    this.#state = isWhole ? 'body' : 'ended'
    this.#parts.header(isWhole ? held.subarray(0, end.length) : null)
    if (isWhole && end.bodyStart < held.length) this.#parts.body(held.subarray(end.bodyStart))
  }
}

interface HeaderEnd {
  length: number
  bodyStart: number
}

/** RFC 5322 2.1: the first empty line; it may be the first line of all. */
function endOfHeader(bytes: Buffer, from: number): HeaderEnd | null {
  if (bytes.length >= 2 && bytes.subarray(0, 2).equals(lineEnd)) return { length: 0, bodyStart: 2 }
  const at = bytes.indexOf(emptyLine, from)
  return at < 0 ? null : { length: at + 2, bodyStart: at + 4 }
}
