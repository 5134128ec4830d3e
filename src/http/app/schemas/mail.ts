// Schemas of mail that only the pages use: safe HTML, captured mail, and the used share of limits.
import Type from 'typebox'
import { Mailbox } from '../../schemas/mailbox.ts'
import { Count, component, NextCursor, nullable, patterned, Time, Uuid } from '../../schemas/scalars.ts'

export const safeHtml = Type.String({
  description:
    'Without anything that runs, loads or asks. Pictures from elsewhere have their address in data-remote-src.',
})
export const remoteImages = { ...Count, description: 'How many pictures would be loaded from elsewhere.' }

export const MailPage = component(
  'MailPage',
  Type.Object(
    {
      html: safeHtml,
      remoteImages,
      cut: Type.Boolean({ description: 'Whether only its beginning is shown.' }),
    },
    { description: 'The HTML of a message, to be shown in the frame at /app/frame.' },
  ),
)

export const InboxName = component(
  'InboxName',
  Type.Object(
    { displayName: patterned('subject', { minLength: 1, maxLength: 200 }) },
    {
      additionalProperties: false,
      description: 'The name that recipients see beside the address.',
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
      sender: addressees('Of a reply to who wrote it.'),
      all: addressees('Of a reply to everyone.'),
    },
    { description: 'Whom a reply would go to, and under which subject.' },
  ),
)

const captured = {
  id: Uuid,
  sender: Type.String({ description: 'MAIL FROM; empty for reports.' }),
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
    { description: 'Mail that would have left, newest first.' },
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
    { description: 'A mail that would have left, as it would be read.' },
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
    { description: 'The limits of the organization, and what is used of them.' },
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
