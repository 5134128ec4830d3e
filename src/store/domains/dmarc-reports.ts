// Aggregate DMARC reports to be sent: the counts for them, and the reports that are due.
import { sha256 } from '../../base/digest.ts'
import { Arguments } from '../../postgres/arguments.ts'
import { column, pick } from '../../postgres/columns.ts'
import type { Queryable, Writer } from '../../postgres/db.ts'

/** A report's domain and day, `2026-11-22` in UTC. */
export interface ReportKey {
  day: string
  policyDomain: string
}

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

export interface DueReport<Policy> extends ReportKey {
  policy: Policy
  omitted: number
  failures: number
}

/** Claims the report that has been due the longest, until `leaseUntil`; null if none is due. */
export async function claimDmarcReport<Policy>(
  db: Writer,
  at: Date,
  leaseUntil: Date,
): Promise<DueReport<Policy> | null> {
  const [claimed] = await db.query<DueReport<Policy>>(
    `update dmarc_report r set due_at = $2
    from (
      select day, policy_domain from dmarc_report
      where due_at <= $1 order by due_at limit 1 for update skip locked
    ) n
    where r.day = n.day and r.policy_domain = n.policy_domain
    returning to_char(r.day, 'YYYY-MM-DD') as day, r.policy_domain as "policyDomain", r.policy, r.omitted, r.failures`,
    [at, leaseUntil],
  )
  return claimed ?? null
}

/** Reads the counts for the report, the most frequent first. */
export async function readDmarcKinds<Mail>(
  db: Queryable,
  { day, policyDomain }: ReportKey,
): Promise<{ mail: Mail; count: number }[]> {
  return await db.query(
    `select mail, amount as count from dmarc_evaluation
    where day = $1 and policy_domain = $2 order by amount desc, digest`,
    [day, policyDomain],
  )
}

export async function postponeDmarcReport(
  db: Writer,
  { day, policyDomain }: ReportKey,
  dueAt: Date,
): Promise<void> {
  await db.query(
    'update dmarc_report set due_at = $3, failures = failures + 1 where day = $1 and policy_domain = $2',
    [day, policyDomain, dueAt],
  )
}

export async function deleteDmarcReport(db: Writer, { day, policyDomain }: ReportKey): Promise<void> {
  await db.query('delete from dmarc_report where day = $1 and policy_domain = $2', [day, policyDomain])
}

/** Deletes up to `limit` reports of earlier days; returns how many. */
export async function deleteDmarcReportsBefore(db: Writer, day: string, limit: number): Promise<number> {
  const gone = await db.query(
    `delete from dmarc_report where (day, policy_domain) in (
      select day, policy_domain from dmarc_report where day < $1 order by day, policy_domain limit $2) returning day`,
    [day, limit],
  )
  return gone.length
}
