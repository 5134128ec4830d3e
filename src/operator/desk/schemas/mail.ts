// Schemas of mail that only the operator reads: captured mail, and mail for the service's own addresses.
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
  /** Not yet opened, at the desk or on the command line. */
  isUnread: Type.Boolean(),
}

export const MailList = Type.Object({
  mails: Type.Array(Type.Object(entry)),
  nextCursor: orNull(Type.String()),
  /** Whether this list can have mail: captured mail exists only if delivery is `capture`. */
  isFilled: Type.Boolean(),
})

export const Mail = Type.Object({
  ...entry,
  headers: Type.Array(Type.Object({ name: Type.String(), value: Type.String() })),
  /** Whether it has more headers than are shown. */
  isHeaderCut: Type.Boolean(),
  text: Type.String(),
  /** Whether the mail has HTML. If it has no text, `text` is made from the HTML. */
  hasHtml: Type.Boolean(),
  attachments: Type.Array(
    Type.Object({ filename: Type.String(), contentType: Type.String(), sizeBytes: Type.Integer() }),
  ),
  note: orNull(Type.String()),
})
