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

/** `later`: a limit, the inbox is missing, or its organization is not active. `refused`: never to this address. */
export type OwnSendResult =
  | { status: 'accepted'; submissionId: SubmissionId }
  | { status: 'later'; code: string }
  | { status: 'refused'; code: string }
