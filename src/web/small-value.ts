// Decides which refused values are checked again for all of their errors.

/** Above these limits a list of all errors could cost more than the request itself. Only the first error is reported. */
const maxValues = 1_000
const maxCharacters = 256 * 1024

export function isSmall(value: unknown): boolean {
  const left = [value]
  let characters = 0
  for (let count = 0; left.length > 0; count++) {
    const next = left.pop()
    if (typeof next === 'string') characters += next.length
    else if (typeof next === 'object' && next !== null) {
      const members = Object.entries(next)
      if (members.length > maxValues) return false
      for (const [name, member] of members) {
        characters += name.length
        left.push(member)
      }
    }
    if (count > maxValues || characters > maxCharacters) return false
  }
  return true
}
