// Shortens the strings of JSON while it is read, so that an answer with a large text is never held whole.
import { ServiceError } from '../../base/errors.ts'

const quote = 0x22
const backslash = 0x5c
const letterU = 0x75

/**
 * Yields the JSON with at most `maxChars` characters of each string, escapes counted as one. One more character is kept of a
 * surrogate pair. Throws `page_too_large` after `maxTotal` characters in all.
 */
export async function* shortenStrings(
  chunks: AsyncIterable<string>,
  maxChars: number,
  maxTotal: number,
): AsyncGenerator<string> {
  const shortener = new Shortener(maxChars)
  let total = 0
  for await (const chunk of chunks) {
    const kept = shortener.push(chunk)
    total += kept.length
    if (total > maxTotal)
      throw new ServiceError('page_too_large', 'The answer is too large. Use a smaller limit.')
    yield kept
  }
}

class Shortener {
  readonly #maxChars: number
  #isInside = false
  /** Characters of the current string so far. */
  #count = 0
  /** The rest of the current string is dropped. */
  #isFull = false
  /** The number of characters that the current escape still has. -1: its kind is not known yet. */
  #escape = 0

  constructor(maxChars: number) {
    this.#maxChars = maxChars
  }

  /** The part of the chunk that is kept. */
  push(chunk: string): string {
    let [kept, from] = ['', this.#isFull ? chunk.length : 0]
    for (let at = 0; at < chunk.length; at++) {
      const code = chunk.charCodeAt(at)
      const isKept = this.#isFull
      if (this.#take(code)) {
        if (isKept) from = at
      } else if (!isKept) {
        kept += chunk.slice(from, at)
        from = chunk.length
      }
    }
    return kept + chunk.slice(from)
  }

  /** Whether the character is kept. */
  #take(code: number): boolean {
    if (!this.#isInside) {
      if (code === quote) [this.#isInside, this.#count] = [true, 0]
      return true
    }
    if (this.#escape !== 0) {
      if (this.#escape === -1) this.#escape = code === letterU ? 4 : 0
      else this.#escape--
      return !this.#isFull
    }
    if (code === quote) {
      ;[this.#isInside, this.#isFull] = [false, false]
      return true
    }
    // A pair of surrogates is not separated.
    if (++this.#count > this.#maxChars && !isLowSurrogate(code)) this.#isFull = true
    if (code === backslash) this.#escape = -1
    return !this.#isFull
  }
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff
}
