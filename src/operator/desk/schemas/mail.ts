// What the desk says of mail that belongs to nobody but the operator: captured, and kept for the service's own addresses.
import Type from 'typebox'
import { exactly, oneOf, orNull, Time } from './scalars.ts'

const kind = oneOf(['captured', 'kept'])
const Id = Type.String({ pattern: '^[A-Za-z0-9_-]{1,60}$' })

export const MailKindParams = Type.Object({ kind })
export const MailParams = Type.Object({ kind, mailId: Id })
export const MailQuery = exactly({ cursor: Type.Optional(Id) })

const entry = {
  id: Type.String(),
  sender: Type.String(),
  recipients: Type.Array(Type.String()),
  at: Time,
  sizeBytes: Type.Integer(),
  from: orNull(Type.String()),
  subject: orNull(Type.String()),
  /** Nobody has opened it yet, here or at the command line. */
  isUnread: Type.Boolean(),
}

export const MailList = Type.Object({
  mails: Type.Array(Type.Object(entry)),
  nextCursor: orNull(Type.String()),
  /** Whether mail can come here at all: nothing is captured where mail is delivered. */
  isFilled: Type.Boolean(),
})

export const Mail = Type.Object({
  ...entry,
  headers: Type.Array(Type.Object({ name: Type.String(), value: Type.String() })),
  /** Whether there are more of them than are shown. */
  isHeaderCut: Type.Boolean(),
  text: Type.String(),
  /** Whether the text was made of HTML, or stands beside it. */
  hasHtml: Type.Boolean(),
  attachments: Type.Array(
    Type.Object({ filename: Type.String(), contentType: Type.String(), sizeBytes: Type.Integer() }),
  ),
  note: orNull(Type.String()),
})
