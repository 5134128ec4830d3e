// Addresses as people type and paste them.
import type { Mailbox } from '../mail-queries.ts'

const named = /^\s*"?([^"<>]*?)"?\s*<([^<>\s]+)>\s*$/
/** As much as can be said here; the service knows all of it. */
const shape = /^[^\s@<>(),;:"\\[\]]+@[^\s@<>(),;:"\\[\]]+$/

/** `ada@example.com` or `Ada Lovelace <ada@example.com>`; null where it is neither. */
export function readAddress(text: string): Mailbox | null {
  const [, name = '', email = text.trim()] = named.exec(text) ?? []
  if (!shape.test(email)) return null
  return { email, ...(name ? { name } : {}) }
}

/** The addresses of a text in which they are set apart by commas, semicolons or lines; what is none of them is left over. */
export function readAddresses(text: string): { mailboxes: Mailbox[]; rest: string } {
  const pieces = text.split(/[,;\n]+|(?<=@\S+)\s+(?=\S+@)/).filter((piece) => piece.trim() !== '')
  const read = pieces.map((piece) => ({ piece, mailbox: readAddress(piece) }))
  return {
    mailboxes: read.flatMap(({ mailbox }) => mailbox ?? []),
    rest: read.flatMap(({ piece, mailbox }) => (mailbox ? [] : piece.trim())).join(', '),
  }
}

/** Each address once. */
export function withoutTwins(mailboxes: readonly Mailbox[]): Mailbox[] {
  return [...new Map(mailboxes.map((mailbox) => [mailbox.email.toLowerCase(), mailbox])).values()]
}
