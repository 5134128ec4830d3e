// Checks whether a client may send for a domain by the domain's SPF record (RFC 7208).
import { parseDomain } from '../../mail/address.ts'
import { clientIp } from '../ip-network.ts'
import { type Asked, type Lookup, recordLookups } from '../lookup.ts'
import {
  evaluateSpf,
  macroValues,
  type SpfCheck,
  type SpfLimits,
  type SpfOutcome,
  type SpfResult,
  spfLimits,
} from './evaluate.ts'
import { expandName, expandText, parseExplanation } from './macro.ts'

export interface SpfInput {
  /** The client's address. */
  ip: string
  /** As the client gave it. Empty if it gave none. */
  helo: string
  /** The address of MAIL FROM. Empty for the null return path. */
  from: string
  /** The receiver's host name, for explanations. */
  hostname: string
  /** The time of receipt, for explanations. */
  at: Date
}

export interface SpfVerdict {
  result: SpfResult
  /** In a sentence of printable ASCII. Names and terms in it are the sender's. */
  reason: string
  /** The domain that was checked, as A-labels in lower case. Empty if the identity has no domain name. */
  domain: string
  identity: 'mailfrom' | 'helo'
  /** The matching term of the domain's own record, or of the record it redirects to. Null if none matched. */
  mechanism: string | null
  /** The domain's own explanation of a refusal: printable ASCII of at most 400 characters. Null if it gives none. */
  explanation: string | null
  asked: Asked[]
}

export interface SpfOptions {
  limits?: SpfLimits
}

// RFC 5321 4.5.3.1.3: a path has at most 256 octets. Our grammar accepts no longer path.
const maxPathChars = 256
// RFC 5321 4.5.3.1.2: a domain has at most 255 octets.
const maxHeloChars = 255
const maxExplanationChars = 400
const maxExplanationTextChars = 8192

/**
 * Checks MAIL FROM, or HELO if MAIL FROM is null. Give an empty `from` to check HELO alone. Never rejects for any input
 * from DNS or the client, and takes as long as its look-ups. With `spfLimits` asks at most 123 questions for any sender.
 */
export async function checkSpf(
  lookup: Lookup,
  input: SpfInput,
  { limits = spfLimits }: SpfOptions = {},
): Promise<SpfVerdict> {
  const recorded = recordLookups(lookup)
  const sender = senderOf(input)
  const check = newCheck(recorded.lookup, limits, input, sender)
  const { result, reason, mechanism, explanation } = await evaluateSpf(check, sender.domain)
  return {
    result,
    reason,
    mechanism,
    domain: sender.domain,
    identity: input.from === '' ? 'helo' : 'mailfrom',
    explanation: explanation && (await explain(check, explanation)),
    asked: recorded.asked(),
  }
}

/** The identity to check. Its domain is empty if it has no name that could have a record. */
function senderOf({ from, helo }: SpfInput): SpfCheck['sender'] {
  // RFC 7208 2.4: for the null return path the identity is postmaster at the client's HELO name.
  const address = from === '' ? `postmaster@${helo}` : from
  const at = address.lastIndexOf('@')
  return {
    // RFC 7208 4.3: the default local part is postmaster.
    localPart: address.slice(0, Math.max(at, 0)) || 'postmaster',
    domain: address.length > maxPathChars + maxHeloChars ? '' : domainOf(address.slice(at + 1)),
  }
}

function domainOf(given: string): string {
  const text = given.replace(/\.$/, '')
  // RFC 8616 4: U-labels become A-labels before anything is asked.
  const domain = /[^\x00-\x7f]/.test(text) ? (parseDomain(text) ?? '') : text.toLowerCase()
  const labels = domain.split('.')
  // RFC 7208 4.3: only domain names of several labels are looked up, not address literals and the like.
  const isDomain = labels.length > 1 && labels.every((label) => /^[a-z0-9_-]{1,63}$/.test(label))
  return isDomain && domain.length <= 253 && /[^0-9]/.test(labels.at(-1)!) ? domain : ''
}

function newCheck(
  lookup: Lookup,
  limits: SpfLimits,
  { ip, helo, hostname, at }: SpfInput,
  sender: SpfCheck['sender'],
): SpfCheck {
  return {
    lookup,
    limits,
    sender,
    hostname,
    at,
    ip: clientIp(ip),
    helo: helo.slice(0, maxHeloChars),
    terms: 0,
    voids: 0,
    clientNames: null,
  }
}

/** The domain's explanation. Null if it cannot be had: the result stays as it is. */
async function explain(
  check: SpfCheck,
  { domain, pieces }: NonNullable<SpfOutcome['explanation']>,
): Promise<string | null> {
  const name = expandName(pieces, await macroValues(check, pieces, domain))
  if (name === null) return null
  const answer = await check.lookup('TXT', name)
  // RFC 7208 6.2: DNS errors, no record, several records, and syntax errors mean that there is no explanation.
  if (answer.status !== 'ok' || answer.records.length !== 1) return null
  const [text] = answer.records
  const explanation = text!.length > maxExplanationTextChars ? null : parseExplanation(text!)
  if (explanation === null) return null
  const expanded = expandText(explanation, await macroValues(check, explanation, domain), maxExplanationChars)
  // RFC 7208 6.2: it is US-ASCII. Reply injection: macros may insert line ends that the client sent.
  return /^[\x20-\x7e]+$/.test(expanded) ? expanded : null
}
