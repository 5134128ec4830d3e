// The line ends of a message that comes in chunks of known size: every CR before an LF, every LF behind a CR, no NUL.

const bad = /\r(?!\n|$)|(?<!\r)\n|\0/g

/** Watches one message; a CRLF may be cut by the border of two chunks. */
export class LineEnds {
  #afterCr = false
  #broken = false

  /** Something other than CRLF was seen; final only once the last chunk was followed by `end`. */
  get broken(): boolean {
    return this.#broken
  }

  check(chunk: Buffer): void {
    if (this.#broken || chunk.length === 0) return
    const text = chunk.toString('latin1')
    const lineFeedFirst = text.startsWith('\n')
    bad.lastIndex = lineFeedFirst ? 1 : 0
    this.#broken = lineFeedFirst !== this.#afterCr || bad.test(text)
    this.#afterCr = text.endsWith('\r')
  }

  end(): void {
    if (this.#afterCr) this.#broken = true
  }
}
