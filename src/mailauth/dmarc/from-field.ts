// Parses a From field as readers of mail do, and notes ambiguities about whose addresses it names.
import { toDnsName } from './dns-name.ts'

export interface FromField {
  /** The texts at the positions of addresses, in order, at most 20, as written: sound or not. */
  addresses: string[]
  /** Null if the field is a plain list of mailboxes, which every reader reads in the same way. */
  fault: string | null
}

const maxAddresses = 20

/** Reads the unfolded value of one field. Takes linear time. */
export function readFromField(field: string): FromField {
  return new FieldReader(field).read()
}

class FieldReader {
  readonly #field: string
  readonly #addresses: string[] = []
  #fault: string | null = null
  #at = 0
  /** The parts of the current mailbox outside (comments as a space) and inside angle brackets. */
  #words = ''
  #angle: string | null = null
  #wordsBeforeAngle = ''

  constructor(field: string) {
    this.#field = field
  }

  read(): FromField {
    while (this.#at < this.#field.length && this.#addresses.length < maxAddresses) this.#readNext()
    if (this.#at < this.#field.length) this.#note('From names too many addresses')
    else this.#endMailbox()
    return { addresses: this.#addresses, fault: this.#fault }
  }

  #note(fault: string): void {
    this.#fault ??= fault
  }

  #readNext(): void {
    const character = this.#field[this.#at]!
    if (character === '"') this.#words += this.#takeQuoted()
    else if (character === '(') this.#skipComment()
    else if (character === '<') this.#takeAngle()
    else if (',;:'.includes(character)) {
      // RFC 6854 2: From may contain a group. It shows another name than that of the address.
      if (character !== ',') this.#note('From has a group')
      if (character === ':') this.#words = ''
      this.#endMailbox()
      this.#at++
    } else this.#words += this.#takeAtoms()
  }

  #takeQuoted(): string {
    const start = this.#at++
    while (this.#at < this.#field.length && this.#field[this.#at] !== '"') this.#skipCharacter()
    if (this.#at >= this.#field.length) this.#note('From has a quote without its end')
    this.#at++
    return this.#field.slice(start, this.#at)
  }

  #skipComment(): void {
    let depth = 0
    do {
      if (this.#field[this.#at] === '(') depth++
      else if (this.#field[this.#at] === ')') depth--
      this.#skipCharacter()
    } while (depth > 0 && this.#at < this.#field.length)
    if (depth > 0) this.#note('From has a comment without its end')
    // RFC 5322 3.2.2: a comment counts as white space, which no address contains.
    this.#words += ' '
  }

  #skipCharacter(): void {
    this.#at += this.#field[this.#at] === '\\' ? 2 : 1
  }

  #takeAngle(): void {
    if (this.#angle !== null) {
      this.#note('From has two angle brackets for one address')
      this.#endMailbox()
    }
    const end = this.#field.indexOf('>', this.#at)
    if (end < 0) this.#note('From has an angle bracket without its end')
    this.#angle = this.#field.slice(this.#at + 1, end < 0 ? this.#field.length : end)
    this.#wordsBeforeAngle = this.#words
    this.#words = ''
    this.#at = end < 0 ? this.#field.length : end + 1
  }

  #takeAtoms(): string {
    specials.lastIndex = this.#at
    const start = this.#at
    this.#at = specials.exec(this.#field)?.index ?? this.#field.length
    return this.#field.slice(start, this.#at)
  }

  #endMailbox(): void {
    const address = (this.#angle ?? this.#words).trim()
    if (this.#angle !== null && this.#words.trim() !== '') this.#note('From has something after an address')
    if (address !== '') this.#addAddress(address)
    else if (this.#angle !== null) this.#note('From has an address that is empty')
    this.#angle = null
    this.#wordsBeforeAngle = ''
    this.#words = ''
  }

  #addAddress(address: string): void {
    const domain = domainOf(address)
    if (domain === null) this.#note('From has something that is no address')
    else if (namesOther(this.#wordsBeforeAngle, domain)) this.#note('From has another address as a name')
    this.#addresses.push(address)
  }
}

const specials = /[,;:"(<]/g
const maxAddressLength = 1000
const soundLocalPart = /^(?:[^\s"(),:;<>@[\\\]]+|"(?:[^"\\]|\\.)*")$/
const controls = /[\x00-\x1f\x7f]/

/** The domain of an address in the current form of RFC 5322 3.4.1. Null for any other text, obsolete forms included. */
export function domainOf(address: string): string | null {
  if (address.length > maxAddressLength || controls.test(address)) return null
  // Against readers that decode encoded words outside their allowed positions:
  // =?utf-8?q?ceo=40bank.example?=@elsewhere.example.
  if (address.includes('=?')) return null
  const at = address.lastIndexOf('@')
  if (at < 1 || !soundLocalPart.test(address.slice(0, at))) return null
  return toDnsName(address.slice(at + 1))
}

const domainAfterAt = /@([^\s@<>(),;:"\\\x00-\x1f\x7f]+)/g

/** Whether the unquoted part of a display name contains an address of another domain. */
function namesOther(words: string, domain: string): boolean {
  if (!words.includes('@')) return false
  const bare = words.replace(/"[^"]*"/g, ' ').slice(0, maxAddressLength)
  return [...bare.matchAll(domainAfterAt)].some(([, name]) => toDnsName(name!) !== domain)
}

/** Every domain, at most 10, that a reader may see in the text at the position of an address. */
export function possibleDomains(address: string): string[] {
  const names = [...address.slice(0, maxAddressLength).matchAll(domainAfterAt)].slice(0, 10)
  const domains = names.map(([, name]) => toDnsName(name!))
  return domains.filter((domain) => domain !== null)
}
