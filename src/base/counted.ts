// A number with its noun in the singular or plural.

/** Returns `1 mail`, `2 mails`. `many` is the plural if it is not `one` with an s. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}
