// What people call organizations, keys, inboxes and themselves: one line that can be seen.

const maxCharacters = 200
// Security: a control character in a name would break a list, or be obeyed by the terminal that it is shown on.
const visibleLine = /^[\p{Z}\p{Cf}]*[^\p{Z}\p{Cf}\p{Cc}]\P{Cc}*$/u
// Security: past these, what stands beside the name would be read in another order. Scripts from right to left need none.
const reorders = /[\u202a-\u202e\u2066-\u2069]/

export const displayNameRule = '1 to 200 characters in one line, at least one of them visible'
export const nameRule = `${displayNameRule}, and none that changes the direction of text`

/** The name without the white space around it; null where it breaks the rule. */
export function readName(given: string): string | null {
  const name = readDisplayName(given)
  return name !== null && !reorders.test(name) ? name : null
}

/** The same for the name of an inbox, which may change the direction of text: the document of `/v1` allows it. */
export function readDisplayName(given: string): string | null {
  const name = given.trim()
  return visibleLine.test(name) && Array.from(name).length <= maxCharacters ? name : null
}
