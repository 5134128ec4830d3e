// Facts, not verdicts, about the parts of a mail's content that a person does not see.
import type { InvisibleCounts } from './invisible.ts'

export interface ContentFacts extends InvisibleCounts {
  /** Characters of the HTML that a person does not see. */
  hiddenText: number
  /** The mail has both plain text and HTML, and they say different things. */
  textDiffersFromHtml: boolean
}

const maxCompared = 256 * 1024
/** Fewer words are in a line such as "Open this in your browser", which often only one of the two has. */
const leastWords = 5

/** Whether one text has five or more different words that the other lacks. Link addresses are not words. Linear. */
export function differ(one: string, other: string): boolean {
  const [first, second] = [comparable(one), comparable(other)]
  if (first === second) return false
  const words = new Set(wordsOf(first))
  const common = new Set<string>()
  const added = new Set<string>()
  for (const word of wordsOf(second))
    if (words.has(word)) common.add(word)
    else if (added.add(word).size >= leastWords) return true
  return words.size - common.size >= leastWords
}

const isPlain = /^[\0-\x7f]*$/

function comparable(text: string): string {
  const words = text.slice(0, maxCompared).replace(/(?:https?:|mailto:)[^\s\]>)]+/gi, ' ')
  return isPlain.test(words) ? words.toLowerCase() : words.normalize('NFKC').toLowerCase()
}

/** Unicode classes take ten times as long to match, and most mail needs none. */
function wordsOf(text: string): string[] {
  return text.match(isPlain.test(text) ? /[a-z0-9]+/g : /[\p{L}\p{N}]+/gu) ?? []
}
