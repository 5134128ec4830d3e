// Sends a report about TLS: as compressed JSON, by mail or by POST, to the addresses that the domain names.
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Log } from '../../base/log.ts'
import type { Lookup } from '../../mailauth/lookup.ts'
import { type Destination, readTlsReportRecord, tlsReportName } from '../../mailauth/tls-report/record.ts'
import { type SessionResult, type TlsReport, writeTlsReport } from '../../mailauth/tls-report/report.ts'
import { tlsReportType, writeTlsReportMail } from '../../mailauth/tls-report/report-mail.ts'
import type { Db } from '../../postgres/db.ts'
import type { DueReport } from '../../store/domains/due-reports.ts'
import { tlsReports } from '../../store/domains/tls-reports.ts'
import type { CallAnswer } from '../../webhook/post.ts'
import type { ReportOutcome } from '../daily-reports.ts'
import type { OwnReport, OwnSendResult } from '../own-mail.ts'

export interface TlsReportingDeps {
  db: Db
  log: Log
  lookup: Lookup
  reporter: TlsReport['reporter']
  /** Accepts one of the service's own reports, once. */
  send(report: OwnReport): Promise<OwnSendResult>
  /** Posts to a stranger's URL. Never rejects. */
  post(url: string, headers: Record<string, string>, body: Buffer): Promise<CallAnswer>
}

/** The reports that are due. */
export const dueTlsReports = tlsReports<SessionResult>()

export async function sendTlsReport(deps: TlsReportingDeps, due: DueReport): Promise<ReportOutcome> {
  const { policyDomain, day, omitted } = due
  const answer = await deps.lookup('TXT', tlsReportName(policyDomain))
  if (answer.status === 'temporary')
    return { status: 'later', reason: 'DNS does not say now where it may go' }
  const destinations = answer.status === 'ok' ? readTlsReportRecord(answer.records) : []
  const kinds = destinations.length > 0 ? await dueTlsReports.readKinds(deps.db, due) : []
  if (kinds.length === 0) return { status: 'done' }
  const rows = kinds.map(({ kind, count }) => ({ result: kind, count }))
  const report = { reporter: deps.reporter, policyDomain, dayStart: new Date(day), rows }
  if (omitted > 0) deps.log.warn({ domain: policyDomain, day, omitted }, 'TLS report leaves out sessions')
  return await sendToAny(deps, report, destinations)
}

/** RFC 8460 3: the report counts as delivered once one of the destinations has it. */
async function sendToAny(
  deps: TlsReportingDeps,
  report: TlsReport,
  destinations: readonly Destination[],
): Promise<ReportOutcome> {
  const content = await promisify(gzip)(writeTlsReport(report))
  let isSent = false
  let reason: string | null = null
  for (const destination of destinations) {
    const failed = await sendTo(deps, report, destination, content)
    isSent ||= failed === null
    if (failed?.isFinal === false) reason = failed.reason
  }
  return isSent || reason === null ? { status: 'done' } : { status: 'later', reason }
}

interface Failure {
  reason: string
  isFinal: boolean
}

/** Returns null once the destination has the report, or this service has taken it for delivery. */
async function sendTo(
  deps: TlsReportingDeps,
  report: TlsReport,
  destination: Destination,
  content: Buffer,
): Promise<Failure | null> {
  const failure =
    'url' in destination
      ? await postTo(deps, destination.url, content)
      : await mailTo(deps, report, destination.email, content)
  const { policyDomain: domain } = report
  if (failure?.isFinal) deps.log.warn({ domain, reason: failure.reason }, 'TLS report could not be sent')
  if (failure === null) deps.log.info({ domain, to: destination }, 'TLS report sent')
  return failure
}

async function postTo({ post }: TlsReportingDeps, url: string, content: Buffer): Promise<Failure | null> {
  // RFC 8460 5.4: the media type says whether the report is compressed.
  const { error, status } = await post(url, { 'content-type': tlsReportType }, content)
  // RFC 8460 5.5: a delivery that fails is tried again for a day.
  return error === null ? null : { reason: error, isFinal: status !== null && isLasting(status) }
}

/** RFC 9110 15.5.9, RFC 6585 4: after 408 and 429 the same request may succeed later. */
function isLasting(status: number): boolean {
  return status >= 400 && status < 500 && status !== 408 && status !== 429
}

async function mailTo(
  { send }: TlsReportingDeps,
  report: TlsReport,
  to: string,
  content: Buffer,
): Promise<Failure | null> {
  const { filename, ...mail } = writeTlsReportMail(report)
  const attachments = [{ filename, contentType: tlsReportType, content }]
  const result = await send({ ...mail, to, attachments, reportType: 'tlsrpt' })
  return result.status === 'accepted' ? null : { reason: result.code, isFinal: result.status === 'refused' }
}
