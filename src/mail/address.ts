// What an e-mail address is: RFC 5321 Mailbox with RFC 6531 characters, its one written form and its comparison key.
import { domainToASCII } from 'node:url'
import { BoundedMap } from '../base/bounded-map.ts'

/** An address with the name people read beside it. `email` is never empty; `name` is absent where there is none. */
export interface Mailbox {
  email: string
  name?: string
}

export interface EmailAddress {
  /** What stands before the last @, quotes and backslashes removed, in the case it was given. */
  localPart: string
  /** Lower case, A-labels (`xn--`), no trailing dot. */
  domain: string
  /** The form to write and send: the local part in quotes only where it needs them, then `@domain`. */
  email: string
}

const maxText = 320
const maxLocalPartOctets = 64
const maxDomainOctets = 253
const maxPathOctets = 256

// Beyond ASCII: no controls, no spaces, no lone surrogates, and nothing that makes an address read as another: direction
// marks, and what is invisible (soft hyphen, zero-width space, word joiner, byte order mark, tags).
const invisible = '\\u00AD\\u200B\\u2060-\\u206F\\uFEFF\\u{E0000}-\\u{E0FFF}'
const beyondAscii = `[^\\x00-\\x7F\\p{Cc}\\p{Cs}\\p{Z}\\p{Bidi_Control}${invisible}]`
const atom = new RegExp(`^(?:[a-zA-Z0-9!#$%&'*+/=?^_\`{|}~-]|${beyondAscii})+$`, 'u')
const quotedContent = new RegExp(`^(?:[ !#-\\[\\]-~]|\\\\[ -~]|${beyondAscii})*$`, 'u')
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const labelsBeforeIdna = /^(?:[a-zA-Z0-9.-]|[^\x00-\x7F])+$/
const hyphenAtEdge = /(?:^|[.\u3002\uff0e\uff61])-|-(?:$|[.\u3002\uff0e\uff61])/
const labelOfAnyLength = /^(?:[a-zA-Z0-9-]|[^\x00-\x7F])+$/
const numericLabel = /^(?:[0-9]+|0x[0-9a-f]*)$/

/**
 * Reads one bare address: no display name, comment, group, source route or address literal, nothing around it.
 * Null for whatever cannot be an SMTP recipient. Linear in the text, which may be of any length.
 */
export function parseEmail(text: string): EmailAddress | null {
  if (text.length > maxText) return null
  const at = text.lastIndexOf('@')
  if (at < 1) return null
  const given = text.slice(0, at)
  // RFC 5321 4.5.3.1.1: a local part has at most 64 octets.
  if (Buffer.byteLength(given) > maxLocalPartOctets) return null
  const localPart = parseLocalPart(given)
  const domain = parseDomain(text.slice(at + 1))
  if (localPart === null || domain === null) return null
  // What came without quotes needs none.
  const email = `${localPart === given ? given : writeLocalPart(localPart)}@${domain}`
  // RFC 5321 4.5.3.1.3: a path has at most 256 octets, its angle brackets among them.
  if (Buffer.byteLength(email) > maxPathOctets - 2) return null
  return { localPart, domain, email }
}

/** An address that was read, with the key under which its spellings are one. */
export type KnownAddress = Readonly<EmailAddress & { key: string }>

const known = new BoundedMap<string, KnownAddress | null>(1_000)

/**
 * What `parseEmail` reads, remembered for a while: a request's addresses are read by its schema and again for their parts,
 * and a sender's with each of its sends. For texts of their own alone: a part of a long one would keep the whole.
 */
export function readEmail(text: string): KnownAddress | null {
  if (text.length > maxText) return null
  let address = known.get(text)
  if (address !== undefined) return address
  const parsed = parseEmail(text)
  address = parsed && { ...parsed, key: addressKey(parsed) }
  known.set(text, address)
  return address
}

/**
 * Whether the text is written as an address is. It may still be none that `parseEmail` reads: its parts too long, its
 * domain no host name. Linear in the text.
 */
export function isWrittenAsEmail(text: string): boolean {
  const at = text.lastIndexOf('@')
  const labels = text.slice(at + 1).split('.')
  return (
    at > 0 &&
    parseLocalPart(text.slice(0, at)) !== null &&
    labels.every((part) => labelOfAnyLength.test(part))
  )
}

/**
 * The key under which two spellings are one address: local part in lower case and NFC, domain in A-labels.
 * What is no address keeps its text, trimmed and in lower case, so that it equals only itself.
 */
export function sameAddressKey(email: string): string {
  const parsed = parseEmail(email)
  return parsed === null ? email.trim().toLowerCase() : addressKey(parsed)
}

function addressKey({ localPart, domain }: EmailAddress): string {
  return `${writeLocalPart(localPart.normalize('NFC').toLowerCase())}@${domain}`
}

function parseLocalPart(given: string): string | null {
  // RFC 5321 4.1.2: Quoted-string = DQUOTE *QcontentSMTP DQUOTE; a backslash takes any printable character.
  if (given.length > 1 && given.startsWith('"') && given.endsWith('"')) {
    const content = given.slice(1, -1)
    return quotedContent.test(content) ? content.replace(/\\(.)/g, '$1') : null
  }
  return isDotString(given) ? given : null
}

function isDotString(localPart: string): boolean {
  // RFC 6531 3.3: atext takes characters beyond ASCII as well.
  return localPart.split('.').every((part) => atom.test(part))
}

function writeLocalPart(localPart: string): string {
  return isDotString(localPart) ? localPart : `"${localPart.replace(/["\\]/g, '\\$&')}"`
}

/** The A-label form in lower case of a domain name, in U-labels or A-labels; null where it is not a host name. */
export function parseDomain(given: string): string | null {
  // IDNA mapping reads its input as part of a URL: only letters, digits, hyphens and dots may reach it.
  if (given.length > maxDomainOctets || !labelsBeforeIdna.test(given)) return null
  const domain = /^[\x00-\x7F]*$/.test(given) ? given.toLowerCase() : domainToASCII(given)
  // RFC 5891 4.2.3.1: no label begins or ends with a hyphen, which the conversion lets pass.
  if (hyphenAtEdge.test(given)) return null
  // RFC 5321 4.5.3.1.2: the RFC allows 255 octets, the DNS (RFC 1035) 253 of them as text.
  if (domain.length > maxDomainOctets) return null
  const labels = domain.split('.')
  if (!labels.every((part) => label.test(part))) return null
  // RFC 3696 2: no top-level domain is all digits; what ends in a number would be read as an IPv4 address.
  return numericLabel.test(labels.at(-1) ?? '') ? null : domain
}
