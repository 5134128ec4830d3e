// The line ends of a message that comes in chunks of known size: every CR before an LF, every LF behind a CR, no NUL.

const bad = /\r(?!\n|$)|(?<!\r)\n|\0/g
const endOfHeader = '\r\n\r\n'

/** Watches one message, or no more than its header; a CRLF may be cut by the border of two chunks. */
export class LineEnds {
  #afterCr = false
  #broken = false
  /** The last bytes of the header so far, which an empty line may end; null where all is watched. An empty line comes first where there is none. */
  #headerTail: string | null
  #isWatching = true

  constructor(watched: 'message' | 'header') {
    this.#headerTail = watched === 'header' ? '\r\n' : null
  }

  /** Something other than CRLF was seen; final only once the last chunk was followed by `end`. */
  get broken(): boolean {
    return this.#broken
  }

  check(chunk: Buffer): void {
    if (this.#broken || !this.#isWatching || chunk.length === 0) return
    const text = this.#watched(chunk.toString('latin1'))
    const lineFeedFirst = text.startsWith('\n')
    bad.lastIndex = lineFeedFirst ? 1 : 0
    this.#broken = lineFeedFirst !== this.#afterCr || bad.test(text)
    this.#afterCr = text.endsWith('\r')
  }

  end(): void {
    if (this.#afterCr) this.#broken = true
  }

  /** What of the chunk is to be checked: all, or what belongs to the header. */
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
