// Schemas of mail that only the pages use: safe HTML, captured mail, and the current use of limits.
import Type from 'typebox'
import { Mailbox } from '../../schemas/mailbox.ts'
import { Count, component, NextCursor, nullable, patterned, Time, Uuid } from '../../schemas/scalars.ts'

export const safeHtml = Type.String({
  description:
    'Sanitized: no scripts, forms or remote content. data-remote-src has the address of a remote image.',
})
export const remoteImages = { ...Count, description: 'The number of remote images.' }

export const MailPage = component(
  'MailPage',
  Type.Object(
    {
      html: safeHtml,
      remoteImages,
      cut: Type.Boolean({ description: 'Whether only the beginning is returned.' }),
    },
    { description: 'The HTML of a message, for the frame at /app/frame.' },
  ),
)

export const InboxName = component(
  'InboxName',
  Type.Object(
    { displayName: patterned('subject', { minLength: 1, maxLength: 200 }) },
    {
      additionalProperties: false,
      description: 'The name that recipients see with the address.',
      examples: [{ displayName: 'Calm Otter' }],
    },
  ),
)

const addressees = (description: string) =>
  Type.Object({ to: Type.Array(Mailbox.ref), cc: Type.Array(Mailbox.ref) }, { description })

export const ReplyPlan = component(
  'ReplyPlan',
  Type.Object(
    {
      subject: Type.String(),
      sender: addressees('The recipients of a reply to the sender.'),
      all: addressees('The recipients of a reply to all.'),
    },
    { description: 'The recipients and the subject of a reply.' },
  ),
)

const captured = {
  id: Uuid,
  sender: Type.String({ description: 'MAIL FROM; empty for bounces.' }),
  recipients: Type.Array(Type.String(), { description: 'RCPT TO.' }),
  from: nullableMailbox(),
  subject: Type.String(),
  sizeBytes: Count,
  capturedAt: Time,
}

export const CapturedList = component(
  'CapturedList',
  Type.Object(
    { captured: Type.Array(Type.Object(captured)), nextCursor: NextCursor },
    { description: 'Captured mail, newest first.' },
  ),
)

export const CapturedMail = component(
  'CapturedMail',
  Type.Object(
    {
      ...captured,
      to: Type.Array(Mailbox.ref),
      cc: Type.Array(Mailbox.ref),
      text: Type.String(),
      html: nullable(safeHtml),
      remoteImages,
      attachments: Type.Array(
        Type.Object({ filename: Type.String(), contentType: Type.String(), size: Count }),
      ),
    },
    { description: 'A captured mail, as its recipient would see it.' },
  ),
)

export function nullableMailbox() {
  return Type.Unsafe<{ email: string; name?: string } | null>({
    type: ['object', 'null'],
    properties: { email: { type: 'string' }, name: { type: 'string' } },
    required: ['email'],
  })
}

const names = [
  ...(['messagesPerMinute', 'messagesPerDay', 'recipientsPerDay', 'receivedMessagesPerDay'] as const),
  ...(['receivedBytesPerDay', 'storedBytes', 'inboxes', 'domains', 'webhookEndpoints'] as const),
  ...(['managedStarter'] as const),
]
const counts = Type.Object(
  Object.fromEntries(names.map((name) => [name, Count])) as Record<(typeof names)[number], typeof Count>,
)

export const Usage = component(
  'Usage',
  Type.Object(
    { limits: counts, used: counts },
    { description: 'The limits of the organization and their usage.' },
  ),
)

export const mailComponents = [
  ...[
    MailPage.definition,
    InboxName.definition,
    ReplyPlan.definition,
    CapturedList.definition,
    CapturedMail.definition,
    Usage.definition,
  ],
]
