// The MTA-STS policy of a domain that mail goes to (RFC 8461): its record, its text, and how a sender applies it.

export type StsMode = 'enforce' | 'testing' | 'none'

export interface StsPolicy {
  mode: StsMode
  /** Patterns for the names of mail servers, in lower case: a name, or `*.` and a name. */
  mx: string[]
  maxAgeSeconds: number
}

/** A policy as the sender knows it, and the last failure to fetch it. */
export interface KnownPolicy {
  /** The id of the record for which the policy was fetched. Null if there is no policy. */
  id: string | null
  policy: StsPolicy | null
  /** When the policy ends. Null if there is none. */
  expiresAt: Date | null
  failedAt: Date | null
}

// RFC 8461 3.3: the suggested maximum size of a policy.
export const maxPolicyBytes = 65_536
const maxRecordLength = 4096
/** Bounds the memory and the rows that one policy takes. A longer list counts as a fault. */
const maxPatterns = 64
// RFC 8461 3.2: max_age is one year at most.
const maxAgeSeconds = 31_557_600
// RFC 8461 3.3: after a failed fetch, the next one follows five minutes later at the earliest.
const pauseMs = 300_000

const version = /^v=STSv1[ \t]*;/
const field = /^([A-Za-z0-9][A-Za-z0-9_.-]{0,31})=([\x21-\x3a\x3c\x3e-\x7e]+)$/
const idValue = /^[A-Za-z0-9]{1,32}$/

/** Returns the id in the record at `_mta-sts.DOMAIN`, from the texts of all records there. Null if there is no valid record. */
export function readStsId(texts: readonly string[]): string | null {
  // RFC 8461 3.1: records of another version are discarded, and then there must be exactly one.
  const [text, other] = texts.filter((text) => version.test(text))
  if (text === undefined || other !== undefined || text.length > maxRecordLength) return null
  const fields = text.split(';').map((part) => part.trim())
  // RFC 8461 3.1: the last field may end with a semicolon.
  if (fields.at(-1) === '') fields.pop()
  let id: string | null = null
  for (const part of fields.slice(1)) {
    const [, name, value = ''] = field.exec(part) ?? []
    if (name === undefined) return null
    // RFC 8461 3.2: of a repeated field the first one counts, and unknown fields are ignored.
    if (name === 'id') id ??= value
  }
  return id !== null && idValue.test(id) ? id : null
}

const line = /^([A-Za-z0-9][A-Za-z0-9_.-]{0,31}):(.*)$/
const pattern =
  /^(?:\*\.)?(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/
const maxNameLength = 255

/** Parses the text of a policy. Returns the policy, or its fault in words. */
export function parseStsPolicy(text: string): { policy: StsPolicy } | { fault: string } {
  if (text.length > maxPolicyBytes) return { fault: `longer than ${maxPolicyBytes} bytes` }
  const fields = new Map<string, string>()
  const mx: string[] = []
  // RFC 8461 3.2: a line ends with LF or CRLF.
  for (const written of text.split(/\r?\n/)) {
    if (written.trim() === '') continue
    const [, name, untrimmed = ''] = line.exec(written) ?? []
    if (name === undefined) return { fault: 'a line is not `name: value`' }
    const value = untrimmed.trim()
    // RFC 8461 3.2: of a repeated field, other than mx, the first one counts. Unknown fields are ignored.
    if (name === 'mx') mx.push(value.toLowerCase())
    else if (!fields.has(name)) fields.set(name, value)
  }
  return readFields(fields, mx)
}

function readFields(
  fields: ReadonlyMap<string, string>,
  mx: string[],
): { policy: StsPolicy } | { fault: string } {
  if (fields.get('version') !== 'STSv1') return { fault: 'the version is not STSv1' }
  const mode = fields.get('mode')
  if (mode !== 'enforce' && mode !== 'testing' && mode !== 'none')
    return { fault: 'the mode is none of enforce, testing and none' }
  const age = fields.get('max_age') ?? ''
  if (!/^\d{1,10}$/.test(age)) return { fault: 'max_age is not a number of seconds' }
  if (mx.length > maxPatterns) return { fault: `more than ${maxPatterns} mx fields` }
  if (mx.some((name) => name.length > maxNameLength || !pattern.test(name)))
    return { fault: 'an mx field is not the name of a mail server' }
  // RFC 8461 3.2: every mode other than none names at least one mail server.
  if (mx.length === 0 && mode !== 'none') return { fault: 'there is no mx field' }
  return { policy: { mode, mx, maxAgeSeconds: Math.min(Number(age), maxAgeSeconds) } }
}

/** Whether the policy names the mail server `host`. */
export function namesHost({ mx }: Pick<StsPolicy, 'mx'>, host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  // RFC 8461 4.1: a wildcard replaces exactly one label, the first.
  const parent = name.slice(name.indexOf('.') + 1)
  return mx.some((entry) =>
    entry.startsWith('*.') ? entry.slice(2) === parent && parent !== name : entry === name,
  )
}

/** The policy that holds at this time: null if there is none, or it has expired. */
export function validPolicy({ policy, expiresAt }: KnownPolicy, at: Date): StsPolicy | null {
  return expiresAt !== null && expiresAt > at ? policy : null
}

/** Whether enough time has passed since the last failed fetch. */
export function mayFetch({ failedAt }: Pick<KnownPolicy, 'failedAt'>, at: Date): boolean {
  return failedAt === null || at.getTime() - failedAt.getTime() >= pauseMs
}

/** Whether the policy must be fetched now. `id` is that of the domain's record; null if the domain shows no valid record. */
export function mustFetch(known: KnownPolicy | null, id: string | null, at: Date): boolean {
  // RFC 8461 5.1: without a valid record, a policy that is known still holds until it expires.
  if (id === null) return false
  if (!known) return true
  return mayFetch(known, at) && (known.id !== id || validPolicy(known, at) === null)
}
