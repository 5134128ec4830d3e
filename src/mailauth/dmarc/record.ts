// Recognizes DMARC policy records among the texts of DNS, and reads their tags.

export type Policy = 'none' | 'quarantine' | 'reject'
export type AlignmentMode = 'relaxed' | 'strict'

export interface DmarcRecord {
  /** Null if the record asks for no policy that can be followed. Then DMARC is not applied. */
  p: Policy | null
  /** For subdomains, and for names that do not exist. Null if the record leaves them to `p`, or `np` to `sp`. */
  sp: Policy | null
  np: Policy | null
  adkim: AlignmentMode
  aspf: AlignmentMode
  /** Whether others have domains of their own below this one: the record says yes, no, or nothing. */
  psd: 'yes' | 'no' | 'unsaid'
  /** `t=y`: apply the policy one level below. */
  isTesting: boolean
  /** Destinations of reports, as written, at most 10. URIs of any scheme. Only their syntax is checked. */
  rua: string[]
  /** The record as DNS gave it. */
  text: string
  /** Parts of the record that are not understood, in words for its owner, at most 10. */
  faults: string[]
}

const maxTextLength = 4096
const maxTags = 64
const maxUris = 10
const maxFaults = 10

// RFC 9989 4.7: the version is the first tag, and its value is case-sensitive.
const version = /^[ \t]*[vV][ \t]*=[ \t]*DMARC1[ \t]*(?:;|$)/

/** Whether the text is a DMARC record or attempts to be one. If a name has several such texts, none counts. */
export function isDmarcRecord(text: string): boolean {
  return version.test(text)
}

/**
 * Parses the record. Null if the text is no DMARC record or is longer than 4096 characters. Ignores unknown tags and
 * invalid values. If a tag is repeated, the first one counts.
 */
export function parseDmarcRecord(text: string): DmarcRecord | null {
  if (text.length > maxTextLength || !isDmarcRecord(text)) return null
  const faults: string[] = []
  const tags = readTags(text, faults)
  const rua = readUris(tags.get('rua') ?? '', faults)
  return {
    ...readPolicies(tags, rua, faults),
    adkim: oneOf(tags, 'adkim', modes, faults) ?? 'relaxed',
    aspf: oneOf(tags, 'aspf', modes, faults) ?? 'relaxed',
    psd: oneOf(tags, 'psd', suffixWords, faults) ?? 'unsaid',
    isTesting: oneOf(tags, 't', testWords, faults) === 'testing',
    rua,
    text,
    faults: faults.slice(0, maxFaults),
  }
}

const policies: Record<string, Policy> = { none: 'none', quarantine: 'quarantine', reject: 'reject' }
const modes: Record<string, AlignmentMode> = { r: 'relaxed', s: 'strict' }
const suffixWords: Record<string, DmarcRecord['psd']> = { y: 'yes', n: 'no', u: 'unsaid' }
const testWords: Record<string, 'testing' | 'applied'> = { y: 'testing', n: 'applied' }

type Tags = ReadonlyMap<string, string>

// RFC 9989 4.8: values are printing characters without semicolons. A name has only letters.
const tag = /^([a-zA-Z]+)[ \t]*=[ \t]*([\t\x20-\x3a\x3c-\x7e]+)$/

function readTags(text: string, faults: string[]): Tags {
  const tags = new Map<string, string>()
  const parts = text.split(';', maxTags + 1)
  if (parts.length > maxTags) faults.push(`more than ${maxTags} tags`)
  for (const part of parts.slice(0, maxTags)) {
    const written = part.trim()
    if (written === '') continue
    const [, name, value] = tag.exec(written) ?? []
    // RFC 9989 4.8: syntax errors in the rest of the record are ignored.
    if (name === undefined || value === undefined) faults.push('something that is no tag')
    // RFC 6376 3.2: a tag occurs once. A second one is a syntax error.
    else if (tags.has(name.toLowerCase())) faults.push(`a second ${name.toLowerCase()} tag`)
    else tags.set(name.toLowerCase(), value.trim())
  }
  return tags
}

function oneOf<Value>(
  tags: Tags,
  name: string,
  values: Record<string, Value>,
  faults: string[],
): Value | null {
  const written = tags.get(name)
  if (written === undefined) return null
  const key = written.toLowerCase()
  if (Object.hasOwn(values, key)) return values[key]!
  faults.push(`${name} has a value that it cannot have`)
  return null
}

function readPolicies(
  tags: Tags,
  rua: readonly string[],
  faults: string[],
): Pick<DmarcRecord, 'p' | 'sp' | 'np'> {
  const [p, sp, np] = ['p', 'sp', 'np'].map((name) => oneOf(tags, name, policies, faults))
  const isWrong = (name: string, value: Policy | null | undefined) => tags.has(name) && value === null
  if (p && !isWrong('sp', sp) && !isWrong('np', np)) return { p, sp: sp ?? null, np: np ?? null }
  if (!tags.has('p')) faults.push('there is no p tag')
  // RFC 9989 4.10.1: with an invalid policy, a record that asks for reports means p=none. Any other record is not applied.
  return { p: rua.length > 0 ? 'none' : null, sp: null, np: null }
}

// RFC 9989 4.8: a URI encodes commas and exclamation marks. The obsolete size after a mark counts as part of the URI here.
const uri =
  /^[a-zA-Z][a-zA-Z0-9+.-]*:(?:[a-zA-Z0-9\-._~:/?#[\]@$&'()*+;=]|%[0-9a-fA-F]{2})+(?:![0-9]+[kKmMgGtT]?)?$/

function readUris(list: string, faults: string[]): string[] {
  if (list === '') return []
  const written = list.split(',').map((one) => one.trim())
  const uris = written.filter((one) => uri.test(one))
  if (uris.length < written.length) faults.push('rua names something that is no URI')
  if (uris.length > maxUris) faults.push(`rua names more than ${maxUris} URIs`)
  return uris.slice(0, maxUris)
}
