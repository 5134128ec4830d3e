// Normalizes domain names that can be registered, and refuses names that cannot be an organization's mail domain.
import { domainToASCII, domainToUnicode } from 'node:url'
import { getPublicSuffix } from 'tldts'
import { parseDomain } from './address.ts'

export type DomainName =
  | { status: 'ok'; name: string }
  /** `expected` completes the sentence "the name …". */
  | { status: 'refused'; expected: string }

/** The text without surrounding white space and without one trailing dot, which marks a name as complete. */
export function trimDomain(given: string): string {
  return given.trim().replace(/\.$/, '')
}

/**
 * The lower-case A-label form of a name that an organization can own: fully qualified, valid by IDNA 2008, below a
 * public suffix. `given` must be trimmed. Linear in the text, which may have any length.
 */
export function normalizeDomain(given: string): DomainName {
  const name = parseDomain(given)
  if (name === null) return refused('must be a host name such as mail.example.com')
  if (!name.includes('.')) return refused('must be fully qualified, such as mail.example.com')
  if (!name.split('.').every(isRegistrableLabel)) return refused('must follow IDNA 2008')
  // The private part of the list counts as well. Below github.io, for example, each name has its own owner.
  const suffix = getPublicSuffix(name, { allowPrivateDomains: true, extractHostname: false })
  if (suffix === name) return refused('must be below a public suffix such as com, not a public suffix itself')
  return { status: 'ok', name }
}

function refused(expected: string): DomainName {
  return { status: 'refused', expected }
}

/** An A-label must be the encoding of its U-label. Other labels must not look like an A-label. */
function isRegistrableLabel(label: string): boolean {
  // RFC 5891 4.2.3.1: hyphens in the third and fourth position are reserved for encodings, of which xn-- is the only one.
  if (!label.startsWith('xn--')) return label.slice(2, 4) !== '--'
  const unicode = domainToUnicode(label)
  return unicode !== label && domainToASCII(unicode) === label && isULabel(unicode)
}

// RFC 5892 2.6: code points that are refused although their category is allowed. For three symbols it is the opposite.
const exceptionsRefused = /[\u0640\u07fa\u302e\u302f\u3031-\u3035\u303b]/u
// RFC 5892 2.1: letters, marks and digits, but no capitals and no symbols such as emoji.
const permitted =
  /^(?:[\p{Ll}\p{Lo}\p{Lm}\p{Mn}\p{Mc}\p{Nd}\u00b7\u0375\u05f3\u05f4\u30fb\u06fd\u06fe\u0f0b-]|\u200c|\u200d)+$/u

function isULabel(label: string): boolean {
  if (!permitted.test(label) || exceptionsRefused.test(label)) return false
  // RFC 5891 4.2.3.2: no combining mark begins a label. No hyphen begins or ends a label, in its U-label either.
  if (/^[\p{M}-]|-$|^..--/u.test(label)) return false
  return contextRules.every(([character, fits]) => !label.includes(character) || fits(label))
}

/** Characters that are allowed only in certain contexts. The conversion to ASCII checks the joiners. */
const contextRules: [string, (label: string) => boolean][] = [
  // RFC 5892 A.3: MIDDLE DOT is allowed between two l, as in Catalan.
  ['\u00b7', (label) => !/(?<!l)\u00b7|\u00b7(?!l)/u.test(label)],
  // RFC 5892 A.4: KERAIA is allowed before Greek.
  ['\u0375', (label) => !/\u0375(?!\p{Script=Greek})/u.test(label)],
  // RFC 5892 A.5: GERESH is allowed after Hebrew.
  ['\u05f3', (label) => !/(?<!\p{Script=Hebrew})\u05f3/u.test(label)],
  // RFC 5892 A.6: GERSHAYIM is allowed after Hebrew.
  ['\u05f4', (label) => !/(?<!\p{Script=Hebrew})\u05f4/u.test(label)],
  // RFC 5892 A.7: KATAKANA MIDDLE DOT is allowed in a label with Japanese or Chinese in it.
  ['\u30fb', (label) => /[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]/u.test(label)],
]
