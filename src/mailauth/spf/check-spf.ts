// Whether a client may send for a domain, as the domain's SPF record says (RFC 7208).
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
  /** As the client said it; empty where it said nothing. */
  helo: string
  /** The address of MAIL FROM; empty for the null return path. */
  from: string
  /** Of the receiver, for explanations. */
  hostname: string
  /** When the mail came, for explanations. */
  at: Date
}

export interface SpfVerdict {
  result: SpfResult
  /** In a sentence, of printable ASCII; names and terms in it are the sender's. */
  reason: string
  /** That was checked: A-labels in lower case; empty where the identity has no domain name. */
  domain: string
  identity: 'mailfrom' | 'helo'
  /** The term of the domain's own record that matched, or of the record it redirects to; null where none did. */
  mechanism: string | null
  /** Why the domain refuses, in its own words: printable ASCII of at most 400 characters. Null unless it says so. */
  explanation: string | null
  asked: Asked[]
}

export interface SpfOptions {
  limits?: SpfLimits
}

// RFC 5321 4.5.3.1.3: a path has 256 octets at most; what is longer comes from no grammar of ours.
const maxPathChars = 256
// RFC 5321 4.5.3.1.2: and a domain 255.
const maxHeloChars = 255
const maxExplanationChars = 400
const maxExplanationTextChars = 8192

/**
 * Checks MAIL FROM, or HELO where that is null; for HELO alone give an empty `from`. Never rejects for what DNS or the
 * client says, and ends as the look-ups do. With `spfLimits` at most 123 questions for any sender.
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

/** The identity that is checked. Its domain is empty where it has no name that a record could stand under. */
function senderOf({ from, helo }: SpfInput): SpfCheck['sender'] {
  // RFC 7208 2.4: for the null return path it is postmaster at the name that the client said.
  const address = from === '' ? `postmaster@${helo}` : from
  const at = address.lastIndexOf('@')
  return {
    // RFC 7208 4.3: without a local part it is postmaster.
    localPart: address.slice(0, Math.max(at, 0)) || 'postmaster',
    domain: address.length > maxPathChars + maxHeloChars ? '' : domainOf(address.slice(at + 1)),
  }
}

function domainOf(given: string): string {
  const text = given.replace(/\.$/, '')
  // RFC 8616 4: U-labels become A-labels before anything is asked.
  const domain = /[^\x00-\x7f]/.test(text) ? (parseDomain(text) ?? '') : text.toLowerCase()
  const labels = domain.split('.')
  // RFC 7208 4.3: nothing is asked of DNS for what is no domain name of several labels, such as an address literal.
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

/** The text of the domain, or null where it cannot be had: the result stays as it is. */
async function explain(
  check: SpfCheck,
  { domain, pieces }: NonNullable<SpfOutcome['explanation']>,
): Promise<string | null> {
  const name = expandName(pieces, await macroValues(check, pieces, domain))
  if (name === null) return null
  const answer = await check.lookup('TXT', name)
  // RFC 7208 6.2: DNS errors, no record or several, and syntax errors count as if there were no explanation.
  if (answer.status !== 'ok' || answer.records.length !== 1) return null
  const [text] = answer.records
  const explanation = text!.length > maxExplanationTextChars ? null : parseExplanation(text!)
  if (explanation === null) return null
  const expanded = expandText(explanation, await macroValues(check, explanation, domain), maxExplanationChars)
  // RFC 7208 6.2: it is US-ASCII. Reply injection: what the client said may bring line ends into it.
  return /^[\x20-\x7e]+$/.test(expanded) ? expanded : null
}
