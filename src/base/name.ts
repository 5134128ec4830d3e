// What people call organizations, keys, inboxes and themselves: one line that can be seen.

const maxCharacters = 200
// Security: a control character in a name would break a list, or be obeyed by the terminal that it is shown on.
const visibleLine = /^[\p{Z}\p{Cf}]*[^\p{Z}\p{Cf}\p{Cc}]\P{Cc}*$/u

export const nameRule = '1 to 200 characters in one line, at least one of them visible'

/** The name without the white space around it; null where it breaks the rule. */
export function readName(given: string): string | null {
  const name = given.trim()
  return visibleLine.test(name) && Array.from(name).length <= maxCharacters ? name : null
}
