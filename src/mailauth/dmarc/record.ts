// Reads DMARC policy records as DNS gives them: which text is one, and what each tag of it says.

export type Policy = 'none' | 'quarantine' | 'reject'
export type AlignmentMode = 'relaxed' | 'strict'

export interface DmarcRecord {
  /** Null where the record asks for nothing that can be followed: DMARC is not applied. */
  p: Policy | null
  /** For subdomains, and for those that do not exist; null where the record leaves them to `p`, or `np` to `sp`. */
  sp: Policy | null
  np: Policy | null
  adkim: AlignmentMode
  aspf: AlignmentMode
  /** Whether its domain is one below which others have domains of their own: it says yes, no, or nothing. */
  psd: 'yes' | 'no' | 'unsaid'
  /** `t=y`: the policy is not to be applied yet, but one level below it. */
  isTesting: boolean
  /** Where reports are asked to, as written there, at most 10; URIs by their syntax alone, of any scheme. */
  rua: string[]
  /** The record as DNS gave it. */
  text: string
  /** What of it is not understood, in words for its owner, at most 10. */
  faults: string[]
}

const maxTextLength = 4096
const maxTags = 64
const maxUris = 10
const maxFaults = 10

// RFC 9989 4.7: the version is the first tag, and its value is compared with its case.
const version = /^[ \t]*[vV][ \t]*=[ \t]*DMARC1[ \t]*(?:;|$)/

/** Whether the text is a DMARC record, or means to be one: of several such, none counts. */
export function isDmarcRecord(text: string): boolean {
  return version.test(text)
}

/**
 * What the record says; null where the text is none, or is longer than 4096 characters. A tag that is unknown, or whose
 * value is none of its own, is passed over; of a tag that stands twice, the first counts.
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

// RFC 9989 4.8: values are printing characters without semicolons; a name is letters alone.
const tag = /^([a-zA-Z]+)[ \t]*=[ \t]*([\t\x20-\x3a\x3c-\x7e]+)$/

function readTags(text: string, faults: string[]): Tags {
  const tags = new Map<string, string>()
  const parts = text.split(';', maxTags + 1)
  if (parts.length > maxTags) faults.push(`more than ${maxTags} tags`)
  for (const part of parts.slice(0, maxTags)) {
    const written = part.trim()
    if (written === '') continue
    const [, name, value] = tag.exec(written) ?? []
    // RFC 9989 4.8: syntax errors in the rest of the record are passed over.
    if (name === undefined || value === undefined) faults.push('something that is no tag')
    // RFC 6376 3.2: a tag stands once. What follows it is an error of syntax.
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
  // RFC 9989 4.10.1: with a wrong policy, a record that asks for reports is read as p=none, and another is not applied.
  return { p: rua.length > 0 ? 'none' : null, sp: null, np: null }
}

// RFC 9989 4.8: commas and exclamation marks of a URI are encoded; the size after a mark is obsolete, and part of it here.
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
