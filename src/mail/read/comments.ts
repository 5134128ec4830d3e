// Removes comments from structured header fields (RFC 5322 3.2.2) in one linear pass.

/** `field` without comments, including nested ones. Parentheses inside quotes are no comments. */
export function withoutComments(field: string): string {
  if (!field.includes('(')) return field
  let kept = ''
  let depth = 0
  let isQuoted = false
  for (let at = 0; at < field.length; at++) {
    const character = field[at]!
    const isEscape = character === '\\' && (isQuoted || depth > 0)
    if (!isEscape && character === '"' && depth === 0) isQuoted = !isQuoted
    if (!isQuoted && !isEscape && character === '(') depth++
    if (depth === 0) kept += isEscape ? character + (field[at + 1] ?? '') : character
    if (isEscape) at++
    else if (depth > 0 && character === ')') depth--
  }
  return kept
}
