// Parses e-mail addresses (RFC 5321 Mailbox with RFC 6531 characters) into one written form and one comparison key.
import { domainToASCII } from 'node:url'
import { BoundedMap } from '../base/bounded-map.ts'

/** An address with its display name. `email` is never empty, and `name` is absent if there is none. */
export interface Mailbox {
  email: string
  name?: string
}

export interface EmailAddress {
  /** The text before the last @, without quotes and backslashes, in its given case. */
  localPart: string
  /** Lower case, A-labels (`xn--`), no trailing dot. */
  domain: string
  /** The form to write and send: the local part, quoted only if it needs quotes, then `@domain`. */
  email: string
}

const maxText = 320
const maxLocalPartOctets = 64
const maxDomainOctets = 253
const maxPathOctets = 256

// Beyond ASCII: no controls, spaces, lone surrogates, or characters that make an address look like another. These are
// direction marks and invisible ones (soft hyphen, zero-width space, word joiner, byte order mark, tags).
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
 * Reads one bare address, without display name, comment, group, source route, address literal or text around it. Null
 * for any text that cannot be an SMTP recipient. Linear in the text, which may have any length.
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
  // A local part given without quotes needs none.
  const email = `${localPart === given ? given : writeLocalPart(localPart)}@${domain}`
  // RFC 5321 4.5.3.1.3: a path has at most 256 octets, including its angle brackets.
  if (Buffer.byteLength(email) > maxPathOctets - 2) return null
  return { localPart, domain, email }
}

/** A parsed address, with a key that is equal for all its spellings. */
export type KnownAddress = Readonly<EmailAddress & { key: string }>

const known = new BoundedMap<string, KnownAddress | null>(1_000)

/**
 * Returns the result of `parseEmail`, cached for a while. A request's addresses are read by its schema and again for
 * their parts, and a sender's address with each send. Pass separate strings only, because a slice of a long text would
 * keep all of it in memory.
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
 * Whether the text has the form of an address. `parseEmail` may still refuse it, because its parts are too long or its
 * domain is no host name. Linear in the text.
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
 * A key that is equal for all spellings of an address: local part in lower case and NFC, domain in A-labels. Text that
 * is no address is its own key, trimmed and in lower case, so that it equals only itself.
 */
export function sameAddressKey(email: string): string {
  const parsed = parseEmail(email)
  return parsed === null ? email.trim().toLowerCase() : addressKey(parsed)
}

function addressKey({ localPart, domain }: EmailAddress): string {
  return `${writeLocalPart(localPart.normalize('NFC').toLowerCase())}@${domain}`
}

function parseLocalPart(given: string): string | null {
  // RFC 5321 4.1.2: Quoted-string = DQUOTE *QcontentSMTP DQUOTE. A backslash may escape any printable character.
  if (given.length > 1 && given.startsWith('"') && given.endsWith('"')) {
    const content = given.slice(1, -1)
    return quotedContent.test(content) ? content.replace(/\\(.)/g, '$1') : null
  }
  return isDotString(given) ? given : null
}

function isDotString(localPart: string): boolean {
  // RFC 6531 3.3: atext includes characters beyond ASCII.
  return localPart.split('.').every((part) => atom.test(part))
}

function writeLocalPart(localPart: string): string {
  return isDotString(localPart) ? localPart : `"${localPart.replace(/["\\]/g, '\\$&')}"`
}

/** The lower-case A-label form of a domain name given in U-labels or A-labels. Null if it is not a host name. */
export function parseDomain(given: string): string | null {
  // IDNA mapping reads its input as part of a URL, so only letters, digits, hyphens and dots may reach it.
  if (given.length > maxDomainOctets || !labelsBeforeIdna.test(given)) return null
  const domain = /^[\x00-\x7F]*$/.test(given) ? given.toLowerCase() : domainToASCII(given)
  // RFC 5891 4.2.3.1: no label begins or ends with a hyphen, but the conversion allows it.
  if (hyphenAtEdge.test(given)) return null
  // RFC 5321 4.5.3.1.2: the RFC allows 255 octets, the DNS (RFC 1035) 253 of them as text.
  if (domain.length > maxDomainOctets) return null
  const labels = domain.split('.')
  if (!labels.every((part) => label.test(part))) return null
  // RFC 3696 2: no top-level domain is all digits. A name that ends in a number would be read as an IPv4 address.
  return numericLabel.test(labels.at(-1) ?? '') ? null : domain
}
