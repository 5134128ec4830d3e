// What a customer's domain must publish: the one list that is shown, printed as a zone and looked up.
import { type MtaStsMode, policyHostOf, policyIdOf } from './mta-sts.ts'

export type RecordPurpose =
  | 'ownership'
  | 'dkim'
  | 'mx'
  | 'return_path'
  | 'spf'
  | 'dmarc'
  | 'mta_sts'
  | 'tls_rpt'

export interface DomainRecord {
  purpose: RecordPurpose
  type: 'TXT' | 'MX'
  /** Absolute, without its trailing dot. */
  name: string
  /** The text of a TXT record, unquoted and in one piece, or the host of an MX record. */
  value: string
  /** The preference of an MX record. */
  priority: number | null
  required: boolean
}

export interface DomainFacts {
  name: string
  challenge: string
  /** The host that takes the domain's mail. */
  mailHost: string
  mtaStsMode: MtaStsMode
  keys: readonly { selector: string; publicRecord: string; state: 'pending' | 'active' | 'retired' }[]
}

const mxPriority = 10
const returnPathLabel = 'bounce.'
const maxName = 253

/** The records of a domain in the order in which people publish them. */
export function listDomainRecords({
  name,
  challenge,
  mailHost,
  mtaStsMode,
  keys,
}: DomainFacts): DomainRecord[] {
  const bounce = returnPathHostOf(name)
  return [
    text('ownership', `_posthorn-challenge.${name}`, challenge),
    ...keys.map(({ selector, publicRecord, state }) => {
      // Retired keys stay for the mail that they signed; nobody has to publish them.
      const required = state !== 'retired'
      return { ...text('dkim', `${selector}._domainkey.${name}`, publicRecord), required }
    }),
    mx('mx', name, mailHost),
    mx('return_path', bounce, mailHost),
    text('spf', bounce, `v=spf1 a:${mailHost} -all`),
    recommended('dmarc', `_dmarc.${name}`, 'v=DMARC1; p=none'),
    recommended('mta_sts', `_mta-sts.${name}`, `v=STSv1; id=${policyIdOf(mailHost, mtaStsMode)}`),
    // RFC 8460 3: reports go to the host that takes the mail, which keeps them for the operator.
    recommended('tls_rpt', `_smtp._tls.${name}`, `v=TLSRPTv1; rua=mailto:tls-reports@${mailHost}`),
  ]
}

/** The host that bounces of the domain's mail come back to. */
export function returnPathHostOf(domain: string): string {
  return `${returnPathLabel}${domain}`
}

/** The domain whose return-path host this would be; null where the name is none. */
export function domainOfReturnPathHost(host: string): string | null {
  return host.startsWith(returnPathLabel) ? host.slice(returnPathLabel.length) : null
}

/** Whether the name can be in DNS at all. */
export function fitsDns(name: string): boolean {
  // RFC 1035 2.3.4: 255 octets with the length of each label, which are 253 characters of text.
  return name.length <= maxName
}

/** Under which a record's observation is kept: what is looked up. */
export function questionOf({ type, name }: Pick<DomainRecord, 'type' | 'name'>): string {
  return `${type} ${name}`
}

function text(purpose: RecordPurpose, name: string, value: string): DomainRecord {
  return { purpose, type: 'TXT', name, value, priority: null, required: true }
}

function recommended(purpose: RecordPurpose, name: string, value: string): DomainRecord {
  return { ...text(purpose, name, value), required: false }
}

function mx(purpose: RecordPurpose, name: string, value: string): DomainRecord {
  return { purpose, type: 'MX', name, value, priority: mxPriority, required: true }
}

/** What the records of one kind do to the domain's mail, for who pastes them: some would take over more than is wanted. */
const zoneGroups: readonly { says: (name: string) => string; has: (record: DomainRecord) => boolean }[] = [
  {
    says: (name) => `to prove that ${name} is yours: it changes nothing for your mail`,
    has: ({ purpose }) => purpose === 'ownership',
  },
  {
    says: (name) => `to send from ${name}: mail that comes to ${name} goes on arriving where it does`,
    has: ({ purpose, required }) =>
      purpose === 'return_path' || purpose === 'spf' || (purpose === 'dkim' && required),
  },
  {
    says: (name) => `to receive: all mail to ${name} comes here from then on; leave it out if you only send`,
    has: ({ purpose }) => purpose === 'mx',
  },
  {
    says: () => 'recommended; what you have published already under these names may stay instead',
    has: ({ purpose }) => purpose === 'dmarc' || purpose === 'mta_sts' || purpose === 'tls_rpt',
  },
  {
    says: () => 'old DKIM keys: leave them for seven days, for mail that is still on its way',
    has: ({ purpose, required }) => purpose === 'dkim' && !required,
  },
]

/**
 * The records as a fragment of a zone file, one line a record, each kind behind a comment that says what it does; names are
 * absolute, so any $ORIGIN will do. The host of the MTA-STS policy is a comment: where it leads is the domain's own choice,
 * which nobody checks.
 */
export function writeZone(
  { name, mailHost }: Pick<DomainFacts, 'name' | 'mailHost'>,
  records: readonly DomainRecord[],
): string {
  const groups = zoneGroups.flatMap(({ says, has }) => {
    const lines = records.filter(has).map(writeRecord)
    return lines.length > 0 ? ['', `; ${says(name)}`, ...lines] : []
  })
  const hint = `; so that its MTA-STS policy is found here: ${policyHostOf(name)}. 3600 IN CNAME ${mailHost}.`
  return [`; ${name}`, ...groups, '', hint, ''].join('\n')
}

function writeRecord(record: DomainRecord): string {
  const line = `${record.name}. 3600 IN ${record.type} ${writeValue(record)}`
  return fitsDns(record.name) ? line : `; too long a name for DNS: ${line}`
}

function writeValue({ type, priority, value }: DomainRecord): string {
  if (type === 'MX') return `${priority} ${value}.`
  // RFC 1035 3.3: a string of a record holds 255 octets at most; readers join them.
  const strings = value.match(/.{1,255}/g) ?? ['']
  // RFC 1035 5.1: a quote or a backslash within a string has a backslash before it.
  return strings.map((string) => `"${string.replace(/["\\]/g, '\\$&')}"`).join(' ')
}
