// The mail that carries a report about TLS (RFC 8460 5.3): its subject, its fields, its note for people, and the document.
import { counted } from '../../base/counted.ts'
import { periodOf, type TlsReport, tlsReportIdOf } from './report.ts'

export interface TlsReportMail {
  subject: string
  /** With angle brackets. */
  messageId: string
  headers: Record<string, string>
  text: string
  filename: string
}

/** RFC 8460 5.2: the media type of the compressed report. */
export const tlsReportType = 'application/tlsrpt+gzip'

/** The same report always gives the same mail. */
export function writeTlsReportMail(report: TlsReport): TlsReportMail {
  const { reporter, policyDomain } = report
  const id = tlsReportIdOf(report)
  return {
    subject: `Report Domain: ${policyDomain} Submitter: ${reporter.host} Report-ID: <${id}>`,
    messageId: `<${id}>`,
    headers: {
      'TLS-Report-Domain': policyDomain,
      'TLS-Report-Submitter': reporter.host,
      // RFC 8460 3: a report must arrive despite failures of TLS. RFC 8689 3 asks all servers on the way for this.
      'TLS-Required': 'No',
    },
    text: noteOf(report),
    filename: filenameOf(report),
  }
}

/** RFC 8460 5.1: sender, policy domain, begin and end, separated by exclamation marks. */
function filenameOf(report: TlsReport): string {
  const { begin, end } = periodOf(report)
  return `${report.reporter.host}!${report.policyDomain}!${begin}!${end}.json.gz`
}

function noteOf({ reporter, policyDomain, dayStart, rows }: TlsReport): string {
  const day = dayStart.toISOString().slice(0, 10)
  const count = rows.reduce((total, row) => total + row.count, 0)
  return [
    `This is a report of ${reporter.host} about TLS on its connections to mail servers of ${policyDomain}`,
    `on ${day} (UTC): ${counted(count, 'session')}. The record _smtp._tls.${policyDomain} asks for it.`,
    `The report is attached, as JSON that is compressed with gzip. Questions: ${reporter.email}\n`,
  ].join('\n')
}
