// Aggregate DMARC reports to be sent: the counts for them.
import { sha256 } from '../../base/digest.ts'
import { Arguments } from '../../postgres/arguments.ts'
import { column, pick } from '../../postgres/columns.ts'
import type { Writer } from '../../postgres/db.ts'
import { type DueReport, DueReports, type ReportKey } from './due-reports.ts'

/** A count of mail of one kind. The caller defines the content of `policy` and `mail`. */
export interface CountedKind<Policy, Mail> extends ReportKey {
  policy: Policy
  mail: Mail
  amount: number
  /**
   * The registered domain, and the network of the first mail. The report counts against the bounds of both. Null: a trusted
   * peer.
   */
  registeredDomain: string
  network: string | null
  /** When the report is due, if this is its first mail. */
  dueAt: Date
}

/** Bounds for what strangers can make us store per day and per report. */
export interface ReportBounds {
  maxReports: number
  maxReportsOfNetwork: number
  maxReportsOfDomain: number
  maxKinds: number
  maxKindsOfNetwork: number
  maxKindsOfReport: number
}

/** Adds to the counts. `kinds` has each kind at most once. */
export async function noteDmarc(
  db: Writer,
  kinds: CountedKind<object, object>[],
  bounds: ReportBounds,
): Promise<void> {
  if (kinds.length === 0) return
  const reports = [...Map.groupBy(kinds, ({ day, policyDomain }) => `${day} ${policyDomain}`).values()]
  const first = reports.map((rows) => rows[0]!)
  const latest = reports.map((rows) => rows.at(-1)!)
  const rows = reports.flat()
  const texts = rows.map(({ mail }) => JSON.stringify(mail))
  const named = new Arguments({
    days: pick(latest, 'day'),
    domains: column('text', pick(latest, 'policyDomain')),
    registered_domains: column('text', pick(first, 'registeredDomain')),
    networks: column('text', pick(first, 'network')),
    policies: column('jsonb', pick(latest, 'policy')),
    dues: column('timestamptz', pick(latest, 'dueAt')),
    of_reports: column(
      'integer',
      reports.flatMap((found, i) => found.map(() => i + 1)),
    ),
    digests: column('bytea', texts.map(sha256)),
    mails: column('jsonb', pick(rows, 'mail')),
    amounts: column('integer', pick(rows, 'amount')),
    most_reports: bounds.maxReports,
    most_reports_of_network: bounds.maxReportsOfNetwork,
    most_reports_of_domain: bounds.maxReportsOfDomain,
    most_kinds: bounds.maxKinds,
    most_kinds_of_network: bounds.maxKindsOfNetwork,
    most_of_report: bounds.maxKindsOfReport,
  })
  await db.query(`select note_dmarc(${named.of()})`, named.values)
}

/** A claimed report, with the policy as it was published last. */
export type DueDmarcReport<Policy> = DueReport & { policy: Policy }

export function dmarcReports<Policy, Mail>(): DueReports<DueDmarcReport<Policy>, Mail> {
  return new DueReports({
    reports: 'dmarc_report',
    kinds: 'dmarc_evaluation',
    kind: 'mail',
    further: ', r.policy',
  })
}
