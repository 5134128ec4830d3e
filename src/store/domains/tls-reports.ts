// Reports about TLS to be sent (RFC 8460): the counts for them.
import { sha256 } from '../../base/digest.ts'
import { Arguments } from '../../postgres/arguments.ts'
import { column, pick } from '../../postgres/columns.ts'
import type { Writer } from '../../postgres/db.ts'
import { type DueReport, DueReports, type ReportKey } from './due-reports.ts'

/** A count of sessions of one kind. The caller defines the content of `result`. */
export interface CountedSessions<Result> extends ReportKey {
  result: Result
  amount: number
  /** The registered domain, which has a share of a day's reports. */
  registeredDomain: string
  /** When the report is due, if this is its first session. */
  dueAt: Date
}

/** Bounds per day and per report, as the owners of domains choose names and policies. */
export interface TlsReportBounds {
  maxReports: number
  maxReportsOfDomain: number
  maxKinds: number
  maxKindsOfReport: number
}

/** Adds to the counts. `kinds` has each kind at most once. */
export async function noteTls(
  db: Writer,
  kinds: readonly CountedSessions<object>[],
  bounds: TlsReportBounds,
): Promise<void> {
  if (kinds.length === 0) return
  const reports = [...Map.groupBy(kinds, ({ day, policyDomain }) => `${day} ${policyDomain}`).values()]
  const first = reports.map((rows) => rows[0]!)
  const rows = reports.flat()
  const texts = rows.map(({ result }) => JSON.stringify(result))
  const named = new Arguments({
    days: pick(first, 'day'),
    domains: column('text', pick(first, 'policyDomain')),
    registered_domains: column('text', pick(first, 'registeredDomain')),
    dues: column('timestamptz', pick(first, 'dueAt')),
    of_reports: column(
      'integer',
      reports.flatMap((found, i) => found.map(() => i + 1)),
    ),
    digests: column('bytea', texts.map(sha256)),
    results: column('jsonb', pick(rows, 'result')),
    amounts: column('integer', pick(rows, 'amount')),
    most_reports: bounds.maxReports,
    most_reports_of_domain: bounds.maxReportsOfDomain,
    most_kinds: bounds.maxKinds,
    most_of_report: bounds.maxKindsOfReport,
  })
  await db.query(`select note_tls(${named.of()})`, named.values)
}

export function tlsReports<Result>(): DueReports<DueReport, Result> {
  return new DueReports({ reports: 'tls_report', kinds: 'tls_session', kind: 'result', further: '' })
}
