// Names of organizations, keys, inboxes and people: one visible line.

const maxCharacters = 200
// Security: a control character in a name would break a list, or be executed by the terminal that shows it.
const visibleLine = /^[\p{Z}\p{Cf}]*[^\p{Z}\p{Cf}\p{Cc}]\P{Cc}*$/u
// Security: these characters would reorder the text around the name. Scripts from right to left do not need them.
const reorders = /[\u202a-\u202e\u2066-\u2069]/

export const displayNameRule = '1 to 200 characters in one line, at least one of them visible'
export const nameRule = `${displayNameRule}, and none that changes the text direction`

/** Returns the name without surrounding white space; null if it breaks the rule. */
export function readName(given: string): string | null {
  const name = readDisplayName(given)
  return name !== null && !reorders.test(name) ? name : null
}

/** `readName` for an inbox, whose name may change the direction of text: the document of `/v1` allows it. */
export function readDisplayName(given: string): string | null {
  const name = given.trim()
  return visibleLine.test(name) && Array.from(name).length <= maxCharacters ? name : null
}
