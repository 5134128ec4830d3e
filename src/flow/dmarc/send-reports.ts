// Sends aggregate reports after their day is over: as XML, to the addresses that the domain names, through this service.
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { DmarcNote } from '../../mailauth/dmarc/dmarc-note.ts'
import { findDestinations } from '../../mailauth/dmarc/report-destinations.ts'
import { type ReportMail, writeReportMail } from '../../mailauth/dmarc/report-mail.ts'
import type { AggregateReport } from '../../mailauth/dmarc/report-xml.ts'
import type { Lookup } from '../../mailauth/lookup.ts'
import type { Db } from '../../postgres/db.ts'
import {
  claimDmarcReport,
  type DueReport,
  deleteDmarcReport,
  deleteDmarcReportsBefore,
  postponeDmarcReport,
  readDmarcKinds,
} from '../../store/domains/dmarc-reports.ts'
import type { OwnMail, OwnSendResult } from '../own-mail.ts'

export interface ReportingDeps {
  db: Db
  clock: Clock
  log: Log
  lookup: Lookup
  reporter: AggregateReport['reporter']
  /** Accepts one of the service's own mails. The same key is accepted once. */
  send(mail: OwnMail): Promise<OwnSendResult>
}

type Due = DueReport<DmarcNote['policy']>

const minuteMs = 60_000
/** If the node dies meanwhile, another node takes the report after this time. */
const leaseMs = 10 * minuteMs
const retryMs = 60 * minuteMs
/** The limit for unanswered DNS questions and temporarily refused sends. */
const maxFailures = 24
/** Reports of earlier days are useless. */
const keptDays = 3
const dropped = 500

/** Sends the report that has been due the longest. Returns whether there was one. */
export async function sendNextReport(deps: ReportingDeps): Promise<boolean> {
  const { db, clock, log } = deps
  const due: Due | null = await claimDmarcReport(db.writer, clock.now(), new Date(clock.nowMs() + leaseMs))
  if (due === null) return await dropOldReports(deps)
  const outcome = await sendReport(deps, due)
  if (outcome.status === 'later' && due.failures < maxFailures) {
    log.warn({ domain: due.policyDomain, day: due.day, reason: outcome.reason }, 'DMARC report deferred')
    await postponeDmarcReport(db.writer, due, new Date(clock.nowMs() + retryMs))
  } else await deleteDmarcReport(db.writer, due)
  return true
}

/** Deletes reports of old days, even if reports are no longer sent. Returns whether there may be more. */
export async function dropOldReports({ db, clock }: Pick<ReportingDeps, 'db' | 'clock'>): Promise<boolean> {
  const oldest = new Date(clock.nowMs() - keptDays * 24 * 60 * minuteMs).toISOString().slice(0, 10)
  return (await deleteDmarcReportsBefore(db.writer, oldest, dropped)) === dropped
}

type Outcome = { status: 'done' } | { status: 'later'; reason: string }

async function sendReport(deps: ReportingDeps, due: Due): Promise<Outcome> {
  const { emails, isIncomplete } = await findDestinations(deps.lookup, due.policyDomain, due.policy.rua)
  const later: Outcome = { status: 'later', reason: 'DNS does not say now where it may go' }
  if (emails.length === 0) return isIncomplete ? later : { status: 'done' }
  const rows = await readDmarcKinds<DmarcNote['mail']>(deps.db, due)
  if (rows.length === 0) return { status: 'done' }
  const { reporter } = deps
  const { policyDomain, policy, omitted, day } = due
  const report = { reporter, policyDomain, policy, rows, omitted, dayStart: new Date(day) }
  const sent = await sendToAll(deps, due, emails, await writeReportMail(report))
  return sent.status === 'done' && isIncomplete ? later : sent
}

async function sendToAll(
  { send, log }: ReportingDeps,
  { policyDomain, day }: Due,
  emails: string[],
  { subject, text, filename, contentType, content }: ReportMail,
): Promise<Outcome> {
  const attachments = [{ filename, contentType, content }]
  let outcome: Outcome = { status: 'done' }
  for (const email of emails) {
    const key = `dmarc ${day} ${policyDomain} ${email}`
    const result = await send({ key, to: email, subject, text, attachments })
    if (result.status === 'refused')
      log.warn({ domain: policyDomain, code: result.code }, 'DMARC report could not be sent')
    else if (result.status === 'later') outcome = { status: 'later', reason: result.code }
    else log.info({ domain: policyDomain, day, submission: result.submissionId }, 'DMARC report sent')
  }
  return outcome
}
