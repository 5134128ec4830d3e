// The mail that carries an aggregate report: its subject, its note for people, and the compressed document.
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { counted } from '../../base/counted.ts'
import { type AggregateReport, periodOf, reportIdOf, writeReportXml } from './report-xml.ts'

export interface ReportMail {
  subject: string
  text: string
  filename: string
  contentType: 'application/gzip'
  content: Buffer
}

/** The same report always gives the same bytes. */
export async function writeReportMail(report: AggregateReport): Promise<ReportMail> {
  const { reporter, policyDomain } = report
  return {
    // RFC 9990 3.5.2: the subject names the domain, the reporter and the report, in this form.
    subject: `Report Domain: ${policyDomain} Submitter: ${reporter.host} Report-ID: <${reportIdOf(report)}>`,
    text: noteOf(report),
    filename: filenameOf(report),
    contentType: 'application/gzip',
    content: await promisify(gzip)(writeReportXml(report)),
  }
}

/** RFC 9990 3.5.2: receiver, policy domain, begin and end, separated by exclamation marks. */
function filenameOf(report: AggregateReport): string {
  const { begin, end } = periodOf(report)
  return `${report.reporter.host}!${report.policyDomain}!${begin}!${end}.xml.gz`
}

function noteOf({ reporter, policyDomain, dayStart, rows }: AggregateReport): string {
  const day = dayStart.toISOString().slice(0, 10)
  const count = rows.reduce((sum, row) => sum + row.count, 0)
  return [
    `This is a DMARC aggregate report of ${reporter.host} about mail in the name of ${policyDomain}`,
    `on ${day} (UTC): ${counted(count, 'message')}. The DMARC record of ${policyDomain} asks for it.`,
    `The report is attached, as XML that is compressed with gzip. Questions: ${reporter.email}\n`,
  ].join('\n')
}
