// Daily reports to other domains: the reports that are due, the kinds counted in each, and their end.
import type { Queryable, Writer } from '../../postgres/db.ts'

/** A report's domain and day, `2026-11-22` in UTC. */
export interface ReportKey {
  day: string
  policyDomain: string
}

export interface DueReport extends ReportKey {
  /** How much was counted without a kind, because there would be too many. */
  omitted: number
  /** How often sending it has failed. */
  failures: number
}

/** The tables of one kind of report. */
interface ReportTables {
  reports: string
  kinds: string
  /** The column of `kinds` with the content of a kind. */
  kind: string
  /** Further columns of `reports` that a claim returns. */
  further: string
}

/** The reports of one kind. `Due` is a claimed report, `Kind` the content of a kind. */
export class DueReports<Due extends DueReport, Kind> {
  readonly #tables: ReportTables

  constructor(tables: ReportTables) {
    this.#tables = tables
  }

  /** Claims the report that has been due the longest, until `leaseUntil`; null if none is due. */
  async claim(db: Writer, at: Date, leaseUntil: Date): Promise<Due | null> {
    const { reports, further } = this.#tables
    const [claimed] = await db.query<Due>(
      `update ${reports} r set due_at = $2
      from (
        select day, policy_domain from ${reports}
        where due_at <= $1 order by due_at limit 1 for update skip locked
      ) n
      where r.day = n.day and r.policy_domain = n.policy_domain
      returning to_char(r.day, 'YYYY-MM-DD') as day, r.policy_domain as "policyDomain", r.omitted, r.failures${further}`,
      [at, leaseUntil],
    )
    return claimed ?? null
  }

  /** Reads the counts for the report, the most frequent kind first. */
  async readKinds(db: Queryable, { day, policyDomain }: ReportKey): Promise<{ kind: Kind; count: number }[]> {
    const { kinds, kind } = this.#tables
    return await db.query(
      `select ${kind} as kind, amount as count from ${kinds}
      where day = $1 and policy_domain = $2 order by amount desc, digest`,
      [day, policyDomain],
    )
  }

  async postpone(db: Writer, { day, policyDomain }: ReportKey, dueAt: Date): Promise<void> {
    await db.query(
      `update ${this.#tables.reports} set due_at = $3, failures = failures + 1 where day = $1 and policy_domain = $2`,
      [day, policyDomain, dueAt],
    )
  }

  async delete(db: Writer, { day, policyDomain }: ReportKey): Promise<void> {
    await db.query(`delete from ${this.#tables.reports} where day = $1 and policy_domain = $2`, [
      day,
      policyDomain,
    ])
  }

  /** Deletes up to `limit` reports of earlier days; returns how many. */
  async deleteBefore(db: Writer, day: string, limit: number): Promise<number> {
    const { reports } = this.#tables
    const gone = await db.query(
      `delete from ${reports} where (day, policy_domain) in (
        select day, policy_domain from ${reports} where day < $1 order by day, policy_domain limit $2) returning day`,
      [day, limit],
    )
    return gone.length
  }
}
