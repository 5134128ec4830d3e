// Facts about the parts of a mail's content that a person does not see. They are no verdict.
import type { InvisibleCounts } from './invisible.ts'

export interface ContentFacts extends InvisibleCounts {
  /** Characters of the HTML that a person does not see. */
  hiddenText: number
  /** Whether the plain text and the HTML say different things, where the mail has both. */
  textDiffersFromHtml: boolean
}

const maxCompared = 256 * 1024
/** Fewer are in a line such as "Open this in your browser", which one of the two often has alone. */
const leastWords = 5

/** Whether one of the texts has five different words or more that the other lacks; addresses of links are no words. Linear. */
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

/** Classes of Unicode take ten times as long to match, and most mail needs none. */
function wordsOf(text: string): string[] {
  return text.match(isPlain.test(text) ? /[a-z0-9]+/g : /[\p{L}\p{N}]+/gu) ?? []
}
