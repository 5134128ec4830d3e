// Schemas of a submission's life and content, which only the pages show.
import Type from 'typebox'
import { Mailbox } from '../../schemas/mailbox.ts'
import {
  Count,
  component,
  failureCode,
  InboxIdText,
  MessageIdText,
  nullable,
  oneOfOrNull,
  ThreadIdText,
  Time,
  Uuid,
} from '../../schemas/scalars.ts'
import { nullableMailbox, remoteImages, safeHtml } from './mail.ts'

const Outlook = Type.Object({
  email: Type.String(),
  attempts: Count,
  failureCode,
  onWire: Type.Boolean({ description: 'A delivery attempt is in progress.' }),
  nextAttemptAt: nullable({ ...Time, description: 'Time of the next attempt, while the recipient waits.' }),
  givenUpAt: nullable({ ...Time, description: 'When delivery is given up, while it is not finished.' }),
  paused: Type.Boolean({ description: 'Whether the operator has paused its queue.' }),
})

const Step = Type.Object({
  command: Type.String({
    description: 'The SMTP verb; `connect` for the greeting, `.` for the end of a message.',
  }),
  atMs: Type.Integer({
    description: 'Milliseconds since the attempt began, without connecting.',
  }),
  code: Type.Integer(),
  enhancedStatus: nullable(Type.String()),
  text: Type.String({ description: 'The text of the reply. A cut text ends with `…`.' }),
})

const Conversation = Type.Object(
  {
    isReused: Type.Boolean({ description: 'Whether the connection was used for an earlier message.' }),
    steps: Type.Array(Step),
  },
  { description: 'The SMTP conversation: each command with its reply. Null if not known.' },
)

const Exchange = Type.Object({
  eventId: Uuid,
  cipher: nullable(Type.String({ description: 'The cipher suite of the connection, as OpenSSL names it.' })),
  stage: oneOfOrNull(['connect', 'mail', 'rcpt', 'data', 'message'], 'The SMTP stage of the response.'),
  tlsPolicy: nullable(
    Type.String({
      description: 'The TLS policy that applied to the server, such as `opportunistic` or `mta-sts enforce`.',
    }),
  ),
  tlsViolation: nullable(
    Type.String({ description: 'How the server violated a policy that is only being tested.' }),
  ),
  conversation: nullable(Conversation),
})

export const SubmissionLife = component(
  'SubmissionLife',
  Type.Object(
    {
      inboxId: nullable(InboxIdText),
      threadId: nullable({
        ...ThreadIdText,
        description: 'Null without a message, and if it was deleted.',
      }),
      messageId: nullable({
        ...MessageIdText,
        description: 'Null without a message, and if it was deleted.',
      }),
      recipients: Type.Array(Outlook, { description: 'In the order of the submission.' }),
      exchanges: Type.Array(Exchange, {
        description: 'Of the newest 1,000 events with a server.',
      }),
    },
    { description: 'The pending steps of a submission, and its SMTP conversations.' },
  ),
)

const Content = Type.Object({
  to: Type.Array(Mailbox.ref),
  replyTo: nullableMailbox(),
  text: Type.String(),
  html: nullable(safeHtml),
  remoteImages,
  cut: Type.Boolean({ description: 'Whether only the beginning of the text or HTML is returned.' }),
  keptUntil: {
    ...Time,
    description: 'When the content is deleted. It stays longer while a recipient waits.',
  },
})

export const SubmissionContent = component(
  'SubmissionContent',
  Type.Object(
    { content: nullable(Content) },
    {
      description: 'The content of a send without an inbox. Null: it is deleted, or the send has a message.',
    },
  ),
)

export const sendingComponents = [SubmissionLife.definition, SubmissionContent.definition]
