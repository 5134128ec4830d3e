// Writes aggregate reports (RFC 9990): one domain's policy and the results of the mail in its name, as an XML document.
import { createHash } from 'node:crypto'
import type { AuthResult } from '../../base/auth-result.ts'
import { counted } from '../../base/counted.ts'
import type { DmarcRecord, Policy } from './record.ts'

/** The policy that mail was evaluated by, as a report shows it. */
export type PublishedPolicy = Pick<DmarcRecord, 'sp' | 'np' | 'adkim' | 'aspf' | 'isTesting'> & { p: Policy }

/** The fields that all mails of a row share. */
export interface ReportedMail {
  sourceIp: string
  /** The author's domain. */
  headerFrom: string
  /** The domain of MAIL FROM. Empty for the null path. */
  envelopeFrom: string
  /** The applied policy: `pass` for mail that passed under a policy, `none` if nothing had to be done. */
  disposition: Policy | 'pass'
  /** Identifiers by which the author's domain vouches. */
  alignedBy: readonly ('dkim' | 'spf')[]
  override: 'policy_test_mode' | 'trusted_forwarder' | 'local_policy' | null
  /** At most 10, the most relevant first. */
  dkim: readonly { domain: string; selector: string; result: AuthResult }[]
  spf: { domain: string; result: AuthResult } | null
}

export interface AggregateReport {
  /** The host that received the mail, and the address for questions about the report. */
  reporter: { host: string; email: string }
  policyDomain: string
  policy: PublishedPolicy
  /** Midnight UTC, the beginning of the report's day. */
  dayStart: Date
  /** At least one. */
  rows: readonly { mail: ReportedMail; count: number }[]
  /** Number of that day's mails that are in no row because there would be too many rows. */
  omitted: number
}

const maxTextLength = 500
const daySeconds = 86_400

/** RFC 9990 3.5.1: unique among the reports to the domain. Stays the same for the same day, however often it is sent. */
export function reportIdOf({ reporter, policyDomain, dayStart }: AggregateReport): string {
  const digest = createHash('sha256').update(`${policyDomain} ${reporter.host}`).digest('hex').slice(0, 12)
  return `${dayStart.toISOString().slice(0, 10)}.${digest}@${reporter.host}`
}

/** First and last second of the report's day, in seconds since 1970. */
export function periodOf({ dayStart }: AggregateReport): { begin: number; end: number } {
  const begin = Math.floor(dayStart.getTime() / 1000)
  return { begin, end: begin + daySeconds - 1 }
}

/** The document, well-formed for any strings. Each string is cut at 500 characters. */
export function writeReportXml(report: AggregateReport): string {
  const root = element('feedback', [
    text('version', '1.0'),
    metadata(report),
    published(report),
    ...report.rows.map(({ mail, count }) => record(mail, count)),
  ])
  const namespace = ' xmlns="urn:ietf:params:xml:ns:dmarc-2.0"'
  return `<?xml version="1.0" encoding="UTF-8"?>\n${root.replace('<feedback', `<feedback${namespace}`)}\n`
}

function metadata(report: AggregateReport): string {
  const { begin, end } = periodOf(report)
  const { reporter, omitted } = report
  return element('report_metadata', [
    text('org_name', reporter.host),
    text('email', reporter.email),
    text('report_id', reportIdOf(report)),
    element('date_range', [text('begin', `${begin}`), text('end', `${end}`)]),
    omitted > 0
      ? text(
          'error',
          `${counted(omitted, 'message is', 'messages are')} in no record: there were too many kinds`,
        )
      : '',
    text('generator', 'Posthorn'),
  ])
}

// RFC 9990 3.1.1.5: a tag that the record leaves out is reported with its default value.
function published({ policyDomain, policy }: AggregateReport): string {
  const sp = policy.sp ?? policy.p
  return element('policy_published', [
    text('domain', policyDomain),
    text('discovery_method', 'treewalk'),
    text('p', policy.p),
    text('sp', sp),
    text('np', policy.np ?? sp),
    text('adkim', policy.adkim === 'strict' ? 's' : 'r'),
    text('aspf', policy.aspf === 'strict' ? 's' : 'r'),
    text('testing', policy.isTesting ? 'y' : 'n'),
  ])
}

function record(mail: ReportedMail, count: number): string {
  return element('record', [
    element('row', [text('source_ip', mail.sourceIp), text('count', `${count}`), evaluated(mail)]),
    element('identifiers', [
      text('header_from', mail.headerFrom),
      // RFC 9990 3.1.1.10: the element is present and empty for a null reverse path.
      text('envelope_from', mail.envelopeFrom),
    ]),
    element('auth_results', [
      ...mail.dkim.map(({ domain, selector, result }) =>
        element('dkim', [text('domain', domain), text('selector', selector), text('result', result)]),
      ),
      mail.spf === null ? '' : spf(mail.spf),
    ]),
  ])
}

function evaluated({ disposition, alignedBy, override }: ReportedMail): string {
  return element('policy_evaluated', [
    text('disposition', disposition),
    text('dkim', alignedBy.includes('dkim') ? 'pass' : 'fail'),
    text('spf', alignedBy.includes('spf') ? 'pass' : 'fail'),
    override === null ? '' : element('reason', [text('type', override)]),
  ])
}

function spf({ domain, result }: NonNullable<ReportedMail['spf']>): string {
  return element('spf', [text('domain', domain), text('scope', 'mfrom'), text('result', result)])
}

function element(name: string, children: readonly string[]): string {
  const lines = [`<${name}>`, ...children.filter((child) => child !== ''), `</${name}>`]
  return lines.join('\n')
}

function text(name: string, value: string): string {
  return `<${name}>${escaped(value)}</${name}>`
}

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
}
// Characters that XML 1.0 cannot contain: controls, lone surrogates, and two noncharacters.
const unwritable = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]/g

function escaped(value: string): string {
  const written = value.slice(0, maxTextLength).toWellFormed().replace(unwritable, '\ufffd')
  return written.replace(/[&<>"']/g, (character) => entities[character]!)
}
