// Writes reports about TLS (RFC 8460): the policies of a domain and the results of the sessions with its servers, as JSON.
import { createHash } from 'node:crypto'

/** RFC 8460 4.3: the kinds of failure. */
export type FailureType =
  | 'starttls-not-supported'
  | 'certificate-host-mismatch'
  | 'certificate-expired'
  | 'certificate-not-trusted'
  | 'validation-failure'
  | 'tlsa-invalid'
  | 'dnssec-invalid'
  | 'sts-policy-fetch-error'
  | 'sts-policy-invalid'
  | 'sts-webpki-invalid'

/** The policy that decided about a session. */
export interface TlsPolicy {
  type: 'tlsa' | 'sts' | 'no-policy-found'
  /** The domain that published it: the recipients' domain, or the TLSA base domain. */
  domain: string
  /** Its records, or the lines of its text. */
  lines: readonly string[]
  /** Patterns of an MTA-STS policy. */
  mx: readonly string[]
}

export interface TlsFailure {
  type: FailureType
  /** Null if no connection was made. */
  sendingIp: string | null
  /** The mail server, as its MX record has it. */
  host: string
  ip: string | null
  /** Why, in words or as a code. */
  reason: string | null
}

/** The facts that all sessions of a row share. */
export interface SessionResult {
  policy: TlsPolicy
  /** Null for a successful session. */
  failure: TlsFailure | null
}

export interface TlsReport {
  /** The host that sent the mail, and the address for questions about the report. */
  reporter: { host: string; email: string }
  /** The domain that the mail went to. */
  policyDomain: string
  /** Midnight UTC, the beginning of the report's day. */
  dayStart: Date
  /** At least one. */
  rows: readonly { result: SessionResult; count: number }[]
}

const daySeconds = 86_400
/** A full certificate in a TLSA record is cut. */
const maxTextLength = 500

/** Stays the same for the same day, however often the report is sent. */
export function tlsReportIdOf({ reporter, policyDomain, dayStart }: TlsReport): string {
  const digest = createHash('sha256').update(`tls ${policyDomain} ${reporter.host}`).digest('hex')
  return `${dayStart.toISOString().slice(0, 10)}.tls.${digest.slice(0, 12)}@${reporter.host}`
}

/** First and last second of the report's day, in seconds since 1970. */
export function periodOf({ dayStart }: Pick<TlsReport, 'dayStart'>): { begin: number; end: number } {
  const begin = Math.floor(dayStart.getTime() / 1000)
  return { begin, end: begin + daySeconds - 1 }
}

/** RFC 8460 4.4: the report. */
export function writeTlsReport(report: TlsReport): string {
  const { begin, end } = periodOf(report)
  const policies = [...Map.groupBy(report.rows, ({ result }) => JSON.stringify(result.policy)).values()]
  return JSON.stringify({
    'organization-name': report.reporter.host,
    'date-range': { 'start-datetime': timeOf(begin), 'end-datetime': timeOf(end) },
    'contact-info': report.reporter.email,
    'report-id': tlsReportIdOf(report),
    policies: policies.map(writePolicy),
  })
}

/** RFC 3339 5.6, in whole seconds. */
function timeOf(seconds: number): string {
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`
}

function writePolicy(rows: TlsReport['rows']): object {
  const { type, domain, lines, mx } = rows[0]!.result.policy
  const failures = rows.flatMap(({ result: { failure }, count }) => (failure ? [{ failure, count }] : []))
  const successes = rows.filter(({ result }) => result.failure === null)
  return {
    policy: {
      'policy-type': type,
      ...(lines.length > 0 && { 'policy-string': lines.map(cut) }),
      'policy-domain': domain,
      ...(mx.length > 0 && { 'mx-host': mx }),
    },
    summary: {
      'total-successful-session-count': sum(successes),
      'total-failure-session-count': sum(failures),
    },
    ...(failures.length > 0 && { 'failure-details': failures.map(writeFailure) }),
  }
}

function writeFailure({ failure, count }: { failure: TlsFailure; count: number }): object {
  const { type, sendingIp, host, ip, reason } = failure
  return {
    'result-type': type,
    ...(sendingIp !== null && { 'sending-mta-ip': sendingIp }),
    'receiving-mx-hostname': host,
    ...(ip !== null && { 'receiving-ip': ip }),
    'failed-session-count': count,
    ...(reason !== null && { 'failure-reason-code': cut(reason) }),
  }
}

function sum(rows: readonly { count: number }[]): number {
  return rows.reduce((total, { count }) => total + count, 0)
}

function cut(text: string): string {
  return text.slice(0, maxTextLength).toWellFormed()
}
