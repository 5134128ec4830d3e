// Lists the records that a customer's domain must publish, for display, for a zone file and for the look-up.
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
  /** Absolute, without the final dot. */
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
  /** The host that receives the domain's mail. */
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
      // Retired keys verify mail that they signed before. They may be published, but need not be.
      const required = state !== 'retired'
      return { ...dkimRecordOf({ domain: name, selector, publicRecord }), required }
    }),
    mx('mx', name, mailHost),
    mx('return_path', bounce, mailHost),
    text('spf', bounce, `v=spf1 a:${mailHost} -all`),
    recommended('dmarc', `_dmarc.${name}`, 'v=DMARC1; p=none'),
    recommended('mta_sts', `_mta-sts.${name}`, `v=STSv1; id=${policyIdOf(mailHost, mtaStsMode)}`),
    // RFC 8460 3: reports go to the host that receives the mail, which keeps them for the operator.
    recommended('tls_rpt', `_smtp._tls.${name}`, `v=TLSRPTv1; rua=mailto:tls-reports@${mailHost}`),
  ]
}

/** The DNS record of a signing key. */
export function dkimRecordOf(key: { domain: string; selector: string; publicRecord: string }): DomainRecord {
  return text('dkim', `${key.selector}._domainkey.${key.domain}`, key.publicRecord)
}

/** The host to which bounces of the domain's mail return. */
export function returnPathHostOf(domain: string): string {
  return `${returnPathLabel}${domain}`
}

/** The domain whose return-path host this is. Null if the name has another form. */
export function domainOfReturnPathHost(host: string): string | null {
  return host.startsWith(returnPathLabel) ? host.slice(returnPathLabel.length) : null
}

/** Whether DNS can hold a name of this length. */
export function fitsDns(name: string): boolean {
  // RFC 1035 2.3.4: 255 octets with the length of each label, which are 253 characters of text.
  return name.length <= maxName
}

/** The key under which the observation of a record is stored: its DNS question. */
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

/** Groups of records with a comment on their effect, because some would redirect more mail than the customer wants. */
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
 * The records as a fragment of a zone file, one per line. A comment before each group says what it does. Names are
 * absolute, so any $ORIGIN works. The host of the MTA-STS policy is only a comment: the domain may choose another host,
 * and we do not check it.
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
  const line = writeZoneLine(record)
  return fitsDns(record.name) ? line : `; too long a name for DNS: ${line}`
}

/** One record as a line of a zone file. Its name is absolute, and a long TXT is split. */
export function writeZoneLine(record: DomainRecord): string {
  return `${record.name}. 3600 IN ${record.type} ${writeValue(record)}`
}

function writeValue({ type, priority, value }: DomainRecord): string {
  if (type === 'MX') return `${priority} ${value}.`
  // RFC 1035 3.3: a string of a record holds at most 255 octets. Readers join the strings.
  const strings = value.match(/.{1,255}/g) ?? ['']
  // RFC 1035 5.1: within a string a backslash precedes each quote and backslash.
  return strings.map((string) => `"${string.replace(/["\\]/g, '\\$&')}"`).join(' ')
}
