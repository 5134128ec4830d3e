// Shortens the strings of JSON while it is read, so that an answer with a large text is never held whole.
import { ServiceError } from '../../base/errors.ts'

const quote = 0x22
const backslash = 0x5c
const letterU = 0x75

/** The characters that are kept of each string: the first `head`, and `length` more from the character `from` on. */
export interface Kept {
  head: number
  from: number
  length: number
}

/**
 * Yields the JSON with shortened strings. A character is a UTF-16 code unit, or an escape. Calls `hold` with the number of
 * characters before they are yielded. Throws `page_too_large` after `maxTotal` characters in all.
 */
export async function* shortenStrings(
  chunks: AsyncIterable<string>,
  kept: Kept,
  maxTotal: number,
  hold: (chars: number) => void = () => {},
): AsyncGenerator<string> {
  const shortener = new Shortener(kept)
  let total = 0
  for await (const chunk of chunks) {
    const rest = shortener.push(chunk)
    total += rest.length
    if (total > maxTotal)
      throw new ServiceError('page_too_large', 'The answer is too large. Use a smaller limit.')
    hold(rest.length)
    yield rest
  }
}

class Shortener {
  readonly #kept: Kept
  #isInside = false
  /** Characters of the current string so far. */
  #count = 0
  /** Whether the current character of the string is kept. */
  #isKept = true
  /** The number of characters that the current escape still has. -1: its kind is not known yet. */
  #escape = 0

  constructor(kept: Kept) {
    this.#kept = kept
  }

  /** The part of the chunk that is kept. */
  push(chunk: string): string {
    let [kept, from] = ['', -1]
    for (let at = 0; at < chunk.length; at++) {
      const isTaken = this.#take(chunk.charCodeAt(at))
      if (isTaken && from === -1) from = at
      if (!isTaken && from !== -1) {
        kept += chunk.slice(from, at)
        from = -1
      }
    }
    return from === -1 ? kept : kept + chunk.slice(from)
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
      return this.#isKept
    }
    if (code === quote) {
      this.#isInside = false
      return true
    }
    const { head, from, length } = this.#kept
    const position = this.#count++
    this.#isKept = position < head || (position >= from && position < from + length)
    if (code === backslash) this.#escape = -1
    return this.#isKept
  }
}
