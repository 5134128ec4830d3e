// Sends daily reports to other domains when they are due, each once, and drops those that are useless.
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Db } from '../postgres/db.ts'
import type { DueReport, DueReports } from '../store/domains/due-reports.ts'

const minuteMs = 60_000
const dayMs = 1_440 * minuteMs
/** By then the day's last counts are stored. Reports are spread over two hours, as every reporter starts at midnight. */
const settledAfterMs = 30 * minuteMs
const spreadMs = 120 * minuteMs
/** If the node dies meanwhile, another node takes the report after this time. */
const leaseMs = 10 * minuteMs
const retryMs = 60 * minuteMs
/** The limit for unanswered DNS questions and temporarily refused sends. */
const maxFailures = 24
/** Reports of earlier days are useless. */
const keptDays = 3
const dropped = 500

/** When the report about a day, `2026-11-22` in UTC, is due. */
export function reportDueAt(day: string): Date {
  return new Date(Date.parse(day) + dayMs + settledAfterMs + Math.random() * spreadMs)
}

/** `later`: the report is tried again after an hour. */
export type ReportOutcome = { status: 'done' } | { status: 'later'; reason: string }

export interface DailyReportDeps<Due extends DueReport, Kind> {
  db: Db
  clock: Clock
  log: Log
  /** For the log, such as `DMARC report`. */
  name: string
  reports: DueReports<Due, Kind>
  /** Sends one report. */
  sendReport(due: Due): Promise<ReportOutcome>
}

/** Sends the report that has been due the longest. Returns whether there was one. */
export async function sendNextReport<Due extends DueReport, Kind>(
  deps: DailyReportDeps<Due, Kind>,
): Promise<boolean> {
  const { db, clock, log, name, reports, sendReport } = deps
  const due = await reports.claim(db.writer, clock.now(), new Date(clock.nowMs() + leaseMs))
  if (due === null) return await dropOldReports(deps, reports)
  const outcome = await sendReport(due)
  if (outcome.status === 'later' && due.failures < maxFailures) {
    log.warn({ domain: due.policyDomain, day: due.day, reason: outcome.reason }, `${name} deferred`)
    await reports.postpone(db.writer, due, new Date(clock.nowMs() + retryMs))
  } else await reports.delete(db.writer, due)
  return true
}

/** Deletes reports of old days, even if reports are no longer sent. Returns whether there may be more. */
export async function dropOldReports<Due extends DueReport, Kind>(
  { db, clock }: { db: Db; clock: Clock },
  reports: DueReports<Due, Kind>,
): Promise<boolean> {
  const oldest = new Date(clock.nowMs() - keptDays * dayMs).toISOString().slice(0, 10)
  return (await reports.deleteBefore(db.writer, oldest, dropped)) === dropped
}
