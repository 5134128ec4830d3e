// Checks the line ends of a message that comes in chunks of known size: CR and LF only as CRLF, and no NUL.

const bad = /\r(?!\n|$)|(?<!\r)\n|\0/g
const endOfHeader = '\r\n\r\n'

/** Checks one message, or only its header. A CRLF may be split between two chunks. */
export class LineEnds {
  #afterCr = false
  #isBroken = false
  /** Tail of the header, to find its end. Starts as CRLF, for mail without a header. Null: the whole message is checked. */
  #headerTail: string | null
  #isWatching = true

  constructor(watched: 'message' | 'header') {
    this.#headerTail = watched === 'header' ? '\r\n' : null
  }

  /** A line end other than CRLF, or a NUL, was found. Final only once `end` was called after the last chunk. */
  get isBroken(): boolean {
    return this.#isBroken
  }

  check(chunk: Buffer): void {
    if (this.#isBroken || !this.#isWatching || chunk.length === 0) return
    const text = this.#watched(chunk.toString('latin1'))
    const lineFeedFirst = text.startsWith('\n')
    bad.lastIndex = lineFeedFirst ? 1 : 0
    this.#isBroken = lineFeedFirst !== this.#afterCr || bad.test(text)
    this.#afterCr = text.endsWith('\r')
  }

  end(): void {
    if (this.#afterCr) this.#isBroken = true
  }

  /** Returns the part of the chunk to check: all of it, or only the part that belongs to the header. */
  #watched(text: string): string {
    const tail = this.#headerTail
    if (tail === null) return text
    const end = (tail + text).indexOf(endOfHeader)
    this.#isWatching = end < 0
    if (end >= 0) return text.slice(0, end + endOfHeader.length - tail.length)
    this.#headerTail = (tail + text.slice(1 - endOfHeader.length)).slice(1 - endOfHeader.length)
    return text
  }
}
