// Reads suppressions from another service's export: each address with its reason, note and time.
import {
  type AddressListing,
  type ListedAddress,
  type ListedRow,
  readAddresses,
} from '../../parts/list/address-list.ts'
import { withoutGuard } from '../../parts/list/csv.ts'
import { readDate, readTime } from '../../parts/list/list-times.ts'
import type { Suppression } from './suppression-queries.ts'

export interface ListedSuppression extends ListedAddress, Pick<Suppression, 'reason' | 'note'> {
  /** ISO 8601. Null if the list has no past time for the address. */
  createdAt: string | null
}

export interface SuppressionListing extends Pick<AddressListing, 'duplicates' | 'others'> {
  suppressions: ListedSuppression[]
}

const maxNote = 200
const maxFieldRead = 1_000
const sampledRows = 20
const sampledColumns = 50

/** The best heading first, compared by letters only. Postmark has `SuppressionReason`, and an `Origin` that is no reason. */
const headings = {
  reason: ['reason', 'suppressionreason', 'suppressiontype', 'bouncetype', 'type', 'error', 'origin'],
  note: ['note'],
  time: [
    ...['createdat', 'created', 'suppressedat', 'bouncedat', 'lastupdatetime', 'dateadded', 'addedat'],
    ...['date', 'timestamp'],
  ],
}

type Reason = Suppression['reason']
const words = new Map<string, Reason>(
  Object.entries({
    manual: ['manual', 'manualsuppression', 'addedbyhand'],
    hard_bounce: [
      'hardbounce',
      'hardbounced',
      'bounce',
      'bounced',
      'bounces',
      'permanent',
      'permanentbounce',
    ],
    complaint: [
      ...[
        'complaint',
        'complained',
        'complaints',
        'spam',
        'spamcomplaint',
        'spamreport',
        'spamreports',
        'abuse',
      ],
    ],
    unsubscribe: [
      'unsubscribe',
      'unsubscribed',
      'unsubscribes',
      'globalunsubscribe',
      'groupunsubscribe',
      'optout',
    ],
  } satisfies Record<Reason, string[]>).flatMap(([reason, names]) =>
    names.map((name) => [name, reason as Reason] as const),
  ),
)
/** RFC 3463 3.2: the address does not exist. Must not match the end of an IP address. */
const noSuchAddress = /(?<![\d.])5\.1\.(?:1|2|3|6|10)(?!\.?\d)/

/** Leaves out times after `nowMs`. */
export function readSuppressionList(text: string, nowMs: number): SuppressionListing {
  const { addresses, head, column, duplicates, others } = readAddresses(text)
  const headed = head.map(lettersOf)
  const find = (names: string[], isOne: (field: string) => boolean) => {
    const named = names.map((name) => headed.indexOf(name)).find((at) => at >= 0)
    return named ?? columnOf(addresses, column, isOne)
  }
  const columns = {
    reason: find(headings.reason, (field) => words.has(lettersOf(field)) || noSuchAddress.test(field)),
    note: find(headings.note, () => false),
    time: find(headings.time, (field) => readDate(field) !== null),
  }
  const suppressions = addresses.map(({ email, line, fields }) => {
    const fieldAt = (at: number) => withoutGuard(fields[at] ?? '').slice(0, maxFieldRead)
    const meaning = meaningOf(fieldAt(columns.reason))
    const note = noteOf(fieldAt(columns.note)) ?? meaning.note
    return { email, line, reason: meaning.reason, note, createdAt: pastTime(fieldAt(columns.time), nowMs) }
  })
  return { suppressions, duplicates, others }
}

/** Returns the first column other than `other` in which at least half of the fields match, or -1. */
function columnOf(rows: readonly ListedRow[], other: number, isOne: (field: string) => boolean): number {
  const sample = rows.slice(0, sampledRows)
  const width = Math.min(sampledColumns, Math.max(0, ...sample.map(({ fields }) => fields.length)))
  return Array.from({ length: width }, (_, at) => at).findIndex((at) => {
    const filled = sample.map(({ fields }) => (fields[at] ?? '').slice(0, maxFieldRead)).filter(Boolean)
    const matching = filled.filter(isOne).length
    return at !== other && matching > 0 && matching * 2 >= filled.length
  })
}

function meaningOf(field: string): { reason: Reason; note: string | null } {
  const reason = words.get(lettersOf(field))
  if (reason) return { reason, note: null }
  return { reason: noSuchAddress.test(field) ? 'hard_bounce' : 'manual', note: noteOf(field) }
}

/** Returns one line without invisible characters and direction marks. */
function noteOf(field: string): string | null {
  const line = field.replace(/[\p{C}\p{Z}]+/gu, ' ').trim()
  return line === '' ? null : [...line].slice(0, maxNote).join('').trim()
}

function pastTime(field: string, nowMs: number): string | null {
  const ms = readTime(field)
  return ms !== null && ms > 0 && ms < nowMs ? new Date(ms).toISOString() : null
}

function lettersOf(text: string): string {
  return text
    .slice(0, maxFieldRead)
    .toLowerCase()
    .replace(/[^a-z]/g, '')
}
