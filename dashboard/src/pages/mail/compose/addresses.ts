// Reads addresses as people type and paste them.
import type { Mailbox } from '../mail-queries.ts'

const named = /^\s*"?([^"<>]*?)"?\s*<([^<>\s]+)>\s*$/
/** A rough check. The service does the full one. */
const shape = /^[^\s@<>(),;:"\\[\]]+@[^\s@<>(),;:"\\[\]]+$/

/** Reads `ada@example.com` or `Ada Lovelace <ada@example.com>`. Returns null for anything else. */
export function readAddress(text: string): Mailbox | null {
  const [, name = '', email = text.trim()] = named.exec(text) ?? []
  if (!shape.test(email)) return null
  return { email, ...(name ? { name } : {}) }
}

/** Reads addresses separated by commas, semicolons or lines. Returns the pieces that are no addresses as `rest`. */
export function readAddresses(text: string): { mailboxes: Mailbox[]; rest: string } {
  const pieces = text.split(/[,;\n]+|(?<=@\S+)\s+(?=\S+@)/).filter((piece) => piece.trim() !== '')
  const read = pieces.map((piece) => ({ piece, mailbox: readAddress(piece) }))
  return {
    mailboxes: read.flatMap(({ mailbox }) => mailbox ?? []),
    rest: read.flatMap(({ piece, mailbox }) => (mailbox ? [] : piece.trim())).join(', '),
  }
}

/** Keeps each address once. */
export function withoutTwins(mailboxes: readonly Mailbox[]): Mailbox[] {
  return [...new Map(mailboxes.map((mailbox) => [mailbox.email.toLowerCase(), mailbox])).values()]
}
