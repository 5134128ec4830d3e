// Mail that the service itself sends, from an inbox that its operator has named for it.
import type { SubmissionId } from '../base/ids.ts'

export interface OwnMail {
  /** What is accepted once with this key is not accepted again. */
  key: string
  to: string
  subject: string
  text: string
  attachments: { filename: string; contentType: string; content: Buffer }[]
}

/** `later`: not now, for a limit, or because the inbox is not there or its organization is not active. `refused`: not to this address. */
export type OwnSendResult =
  | { status: 'accepted'; submissionId: SubmissionId }
  | { status: 'later'; code: string }
  | { status: 'refused'; code: string }
