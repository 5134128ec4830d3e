// Parses address lists of header fields (RFC 5322 3.4) as mailers write them, in one linear pass.
import type { Mailbox } from '../address.ts'
import { oneLine, startOf } from './charset.ts'
import { withoutComments } from './comments.ts'
import { decodeEncodedWords } from './encoded-word.ts'

const maxEmail = 1000
const maxName = 1000

/**
 * Up to `maxMailboxes` mailboxes of the list in order, including the members of groups. Addresses come only from plain text,
 * never from an encoded word or a quoted name. Entries without an address are left out. Everything else is read
 * leniently. Addresses are as written, without comments and white space.
 */
export function parseAddressList(field: string, maxMailboxes: number): Mailbox[] {
  const reader = new ListReader(field, maxMailboxes)
  return reader.read()
}

class ListReader {
  readonly #field: string
  readonly #maxMailboxes: number
  readonly #mailboxes: Mailbox[] = []
  #at = 0
  /** Text outside angle brackets and comments, with its quotes. */
  #words: string[] = []
  #comments: string[] = []
  #angle: string | null = null

  constructor(field: string, maxMailboxes: number) {
    this.#field = field
    this.#maxMailboxes = maxMailboxes
  }

  read(): Mailbox[] {
    while (this.#at < this.#field.length && this.#mailboxes.length < this.#maxMailboxes) this.#readNext()
    if (this.#mailboxes.length < this.#maxMailboxes) this.#endMailbox()
    return this.#mailboxes
  }

  #readNext(): void {
    const character = this.#field[this.#at]!
    if (character === ',' || character === ';') {
      this.#endMailbox()
      this.#at++
    } else if (character === ':') {
      // RFC 5322 3.4: the text before a colon is the name of a group, not a mailbox.
      this.#forget()
      this.#at++
    } else if (character === '"') this.#words.push(this.#takeQuoted())
    else if (character === '(') this.#comments.push(this.#takeComment())
    else if (character === '<') this.#takeAngle()
    else this.#words.push(this.#takeAtoms())
  }

  #take(end: number): string {
    const taken = this.#field.slice(this.#at, end)
    this.#at = end
    return taken
  }

  #takeQuoted(): string {
    let end = this.#at + 1
    while (end < this.#field.length && this.#field[end] !== '"') end += this.#field[end] === '\\' ? 2 : 1
    return this.#take(Math.min(end + 1, this.#field.length))
  }

  #takeComment(): string {
    let depth = 0
    let end = this.#at
    do {
      const character = this.#field[end]
      if (character === '(') depth++
      else if (character === ')') depth--
      end += character === '\\' ? 2 : 1
    } while (depth > 0 && end < this.#field.length)
    return unescaped(this.#take(end).slice(1, -1))
  }

  #takeAngle(): void {
    const start = this.#at + 1
    let end = start
    let isQuoted = false
    while (end < this.#field.length && (isQuoted || this.#field[end] !== '>')) {
      if (this.#field[end] === '"') isQuoted = !isQuoted
      end += this.#field[end] === '\\' ? 2 : 1
    }
    this.#take(end)
    this.#at++
    this.#angle ??= this.#field.slice(start, end)
  }

  #takeAtoms(): string {
    specials.lastIndex = this.#at
    const end = specials.exec(this.#field)?.index ?? this.#field.length
    return this.#take(end)
  }

  #forget(): void {
    this.#words = []
    this.#comments = []
    this.#angle = null
  }

  #endMailbox(): void {
    const mailbox = this.#angle === null ? this.#bareMailbox() : this.#namedMailbox(this.#angle)
    if (mailbox !== null) this.#mailboxes.push(mailbox)
    this.#forget()
  }

  #namedMailbox(angle: string): Mailbox | null {
    const email = cleanAddress(angle)
    if (email === null) return null
    const name = this.#words.map((word) => decodeEncodedWords(unquoted(word))).join('')
    return newMailbox(email, name.trim() === '' ? this.#commentText() : name)
  }

  /** An address without angle brackets: the whole entry without comments, or its only word with an @. */
  #bareMailbox(): Mailbox | null {
    const whole = this.#words.join('').trim()
    const email = cleanAddress(whole) ?? this.#onlyAddress(whole)
    return email === null ? null : newMailbox(email, this.#commentText())
  }

  #onlyAddress(whole: string): string | null {
    if (this.#words.length < 2 && !/\s/.test(whole)) return null
    const words = this.#words.filter((word) => word.includes('@') && !word.startsWith('"'))
    const found = words.flatMap((word) => word.split(/\s+/)).filter((word) => word.includes('@'))
    const addresses = found.filter((word) => !word.includes('=?'))
    return addresses.length === 1 ? cleanAddress(addresses[0]!) : null
  }

  #commentText(): string {
    return decodeEncodedWords(this.#comments.join(' '))
  }
}

const specials = /[,;:"(<]/g

function newMailbox(email: string, name: string): Mailbox {
  const visible = startOf(oneLine(name).replace(/\s+/g, ' ').trim(), maxName)
  return visible === '' ? { email } : { email, name: visible }
}

const quotedLocalPart = /^"(?:[^"\\]|\\.)*"@[^\s@"<>]+$/s
const plainAddress = /^[^\s\p{Cc}\p{Cs}"<>()@,;:\\]+@[^\s\p{Cc}\p{Cs}"<>()@,;]+$/u

function cleanAddress(written: string): string | null {
  if (written.length > maxEmail * 10 || written.length < 3 || !written.includes('@')) return null
  if (written.length <= maxEmail && plainAddress.test(written) && !written.startsWith('=?')) return written
  const bare = withoutComments(oneLine(written)).trim()
  // RFC 5322 4.4: a source route before the address is ignored.
  const route = bare.startsWith('@') ? bare.indexOf(':') + 1 : 0
  const email = withoutObsoleteSpaces(bare.slice(route)).trim()
  if (email.length > maxEmail || email.startsWith('=?')) return null
  return plainAddress.test(email) || quotedLocalPart.test(email) ? email : null
}

/** RFC 5322 4.4: white space around the dots and the @ is obsolete and not part of the address. */
function withoutObsoleteSpaces(address: string): string {
  // Visits each run once. A pattern that begins with white space would try a run from each of its characters.
  return address.replace(/\s+/g, (run, at: number) => {
    const neighbours = `${address[at - 1] ?? ''}${address[at + run.length] ?? ''}`
    return /[.@]/.test(neighbours) ? '' : run
  })
}

function unquoted(word: string): string {
  return word.startsWith('"') ? unescaped(word.replace(/^"|"$/g, '')) : word
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/gs, '$1')
}
