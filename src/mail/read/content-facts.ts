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
  const [first, second] = [wordsOf(one), wordsOf(other)]
  return lacks(first, second) || lacks(second, first)
}

function lacks(words: Set<string>, others: Set<string>): boolean {
  let missing = 0
  for (const word of others) if (!words.has(word)) missing++
  return missing >= leastWords
}

function wordsOf(text: string): Set<string> {
  const words = text
    .slice(0, maxCompared)
    .replace(/(?:https?:|mailto:)[^\s\]>)]+/gi, ' ')
    .normalize('NFKC')
    .toLowerCase()
  return new Set(words.match(/[\p{L}\p{N}]+/gu))
}
