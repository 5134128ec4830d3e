// Sends an aggregate report: as XML, to the addresses that the domain names, through this service.
import type { Log } from '../../base/log.ts'
import type { DmarcNote } from '../../mailauth/dmarc/dmarc-note.ts'
import { findDestinations } from '../../mailauth/dmarc/report-destinations.ts'
import { type ReportMail, writeReportMail } from '../../mailauth/dmarc/report-mail.ts'
import type { AggregateReport } from '../../mailauth/dmarc/report-xml.ts'
import type { Lookup } from '../../mailauth/lookup.ts'
import type { Db } from '../../postgres/db.ts'
import { type DueDmarcReport, dmarcReports } from '../../store/domains/dmarc-reports.ts'
import type { ReportOutcome } from '../daily-reports.ts'
import type { OwnMail, OwnSendResult } from '../own-mail.ts'

export interface ReportingDeps {
  db: Db
  log: Log
  lookup: Lookup
  reporter: AggregateReport['reporter']
  /** Accepts one of the service's own mails. The same key is accepted once. */
  send(mail: OwnMail): Promise<OwnSendResult>
}

type Due = DueDmarcReport<DmarcNote['policy']>

/** The aggregate reports that are due. */
export const dueDmarcReports = dmarcReports<DmarcNote['policy'], DmarcNote['mail']>()

export async function sendDmarcReport(deps: ReportingDeps, due: Due): Promise<ReportOutcome> {
  const { emails, isIncomplete } = await findDestinations(deps.lookup, due.policyDomain, due.policy.rua)
  const later: ReportOutcome = { status: 'later', reason: 'DNS does not say now where it may go' }
  if (emails.length === 0) return isIncomplete ? later : { status: 'done' }
  const kinds = await dueDmarcReports.readKinds(deps.db, due)
  if (kinds.length === 0) return { status: 'done' }
  const { reporter } = deps
  const { policyDomain, policy, omitted, day } = due
  const rows = kinds.map(({ kind, count }) => ({ mail: kind, count }))
  const report = { reporter, policyDomain, policy, rows, omitted, dayStart: new Date(day) }
  const sent = await sendToAll(deps, due, emails, await writeReportMail(report))
  return sent.status === 'done' && isIncomplete ? later : sent
}

async function sendToAll(
  { send, log }: ReportingDeps,
  { policyDomain, day }: Due,
  emails: string[],
  { subject, text, filename, contentType, content }: ReportMail,
): Promise<ReportOutcome> {
  const attachments = [{ filename, contentType, content }]
  let outcome: ReportOutcome = { status: 'done' }
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
