// A number with the word for what it counts.

/** `1 mail`, `2 mails`; `many` is said of several where that is not the word with an s. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}
