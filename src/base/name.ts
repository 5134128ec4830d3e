// What people call organizations, keys, inboxes and themselves: one line that can be seen.

const maxCharacters = 200
// Security: a control character in a name would break a list, or be obeyed by the terminal that it is shown on. A character
// that overrides direction would reorder the words after it (UAX #9 2).
const visibleLine = /^[\p{Z}\p{Cf}]*[^\p{Z}\p{Cf}\p{Cc}]\P{Cc}*$/u
const directionOverride = /[\u202a-\u202e\u2066-\u2069]/

export const nameRule = '1 to 200 characters in one line, at least one of them visible'

/** The name without the white space around it; null where it breaks the rule. */
export function readName(given: string): string | null {
  const name = given.trim()
  const isName = visibleLine.test(name) && !directionOverride.test(name)
  return isName && Array.from(name).length <= maxCharacters ? name : null
}
