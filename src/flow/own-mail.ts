// Mail that the service itself sends, from an inbox that its operator has named for this.
import type { SubmissionId } from '../base/ids.ts'

export interface OwnMail {
  /** Mail with a key that was accepted before is not accepted again. */
  key: string
  to: string
  subject: string
  text: string
  attachments: { filename: string; contentType: string; content: Buffer }[]
}

/** A report in its own form (RFC 6522), which must arrive whatever the recipients' domain says about TLS. */
export interface OwnReport extends Omit<OwnMail, 'key'> {
  /** Its type, such as `tlsrpt`. */
  reportType: string
  /** With angle brackets. A report with an id that was accepted less than a day before is not accepted again. */
  messageId: string
  /** Further fields. */
  headers: Record<string, string>
}

/** `later`: a limit, the inbox is missing, or its organization is not active. `refused`: never to this address. */
export type OwnSendResult =
  | { status: 'accepted'; submissionId: SubmissionId }
  | { status: 'later'; code: string }
  | { status: 'refused'; code: string }
