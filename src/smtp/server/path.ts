// The paths of MAIL and RCPT: parsed strictly, returned in one canonical form.
import { isIPv4, isIPv6 } from 'node:net'
import { domainToASCII } from 'node:url'
import type { Path } from './backend.ts'

export const nullPath: Path = { localPart: '', domain: '', address: '' }

/** Why a path is refused; `domain` if its domain is malformed. */
export type PathFault = 'syntax' | 'too_long' | 'domain'

const atext = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\\u0080-\\u{10ffff}-]"
const dotString = new RegExp(`^${atext}+(?:\\.${atext}+)*$`, 'u')
// RFC 5321 4.1.2: qtextSMTP and quoted-pairSMTP. RFC 6531 3.3 adds the characters beyond ASCII.
const quotedString = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e\u0080-\u{10ffff}]|\\[\x20-\x7e])*)"$/u
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const generalLiteral = /^[A-Za-z0-9-]*[A-Za-z0-9]:[\x21-\x5a\x5e-\x7e]+$/
const maxPathBytes = 256
const maxDomainBytes = 255

/**
 * Returns the length of the path at the start of `text`: up to its closing bracket outside quotes. If it has no brackets
 * (scripts and devices leave them out), up to the first space. Zero if a bracket or quote stays open.
 */
export function pathLength(text: string): number {
  const bracketed = text.startsWith('<')
  let quoted = false
  for (let i = 0; i < text.length; i++) {
    const character = text[i]
    if (quoted && character === '\\') i++
    else if (character === '"') quoted = !quoted
    else if (quoted) continue
    else if (bracketed && character === '>') return i + 1
    else if (!bracketed && character === ' ') return i
  }
  return bracketed || quoted ? 0 : text.length
}

/** Parses `<local@domain>`, with or without brackets. Drops a source route. `<>` is not a path here. */
export function parsePath(text: string): Path | PathFault {
  const inner = text.startsWith('<') ? text.slice(1, -1) : text
  // RFC 5321 4.5.3.1.3: a path has at most 256 octets, its punctuation included.
  if (Buffer.byteLength(inner) + 2 > maxPathBytes) return 'too_long'
  const mailbox = withoutRoute(inner)
  const at = mailbox?.lastIndexOf('@') ?? -1
  if (mailbox === null || at < 1) return 'syntax'
  const localPart = parseLocalPart(mailbox.slice(0, at))
  if (localPart === null) return 'syntax'
  const domain = parseDomain(mailbox.slice(at + 1))
  return domain === null ? 'domain' : toPath(localPart, domain)
}

/** Makes a path of valid parts. */
export function toPath(localPart: string, domain: string): Path {
  const local = dotString.test(localPart) ? localPart : `"${localPart.replace(/["\\]/g, '\\$&')}"`
  return { localPart, domain, address: `${local}@${domain}` }
}

// RFC 5321 4.1.1.3: a source route `@a,@b:` is recognized, and should be ignored.
function withoutRoute(path: string): string | null {
  if (!path.startsWith('@')) return path
  const colon = path.indexOf(':')
  const hops = path.slice(0, colon).split(',')
  return colon > 0 && hops.every((hop) => hop.startsWith('@') && parseDomain(hop.slice(1)) !== null)
    ? path.slice(colon + 1)
    : null
}

function parseLocalPart(text: string): string | null {
  if (dotString.test(text)) return text
  const quoted = quotedString.exec(text)?.[1]
  // The empty quoted string is refused, although RFC 5321 4.1.2 allows it.
  return quoted ? quoted.replace(/\\(.)/g, '$1') : null
}

function parseDomain(text: string): string | null {
  if (text.startsWith('[')) return parseLiteral(text)
  const named = text.endsWith('.') ? text.slice(0, -1) : text
  const ascii = toAsciiDomain(named)
  // RFC 5321 4.5.3.1.2: a domain has at most 255 octets.
  if (ascii.length > maxDomainBytes) return null
  return ascii.split('.').every((part) => label.test(part)) ? ascii : null
}

// domainToASCII reads a URL's host: it would cut `a/b` and decode `%41`, so only letters, digits, hyphens and dots reach it.
function toAsciiDomain(name: string): string {
  const lower = name.toLowerCase()
  if (!/^[a-z0-9.\u0080-\u{10ffff}-]+$/u.test(lower)) return ''
  return /[^\x00-\x7f]|(?:^|\.)xn--/.test(lower) ? domainToASCII(lower) : lower
}

// RFC 5321 4.1.3: address literals.
function parseLiteral(text: string): string | null {
  if (!text.endsWith(']')) return null
  const inner = text.slice(1, -1)
  const ipv6 = /^ipv6:(.*)$/i.exec(inner)?.[1]
  const good = ipv6 === undefined ? isIPv4(inner) || generalLiteral.test(inner) : isIPv6(ipv6)
  return good ? text.toLowerCase() : null
}
