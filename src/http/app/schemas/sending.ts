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
  onWire: Type.Boolean({ description: 'It is with a remote server at this moment.' }),
  nextAttemptAt: nullable({ ...Time, description: 'When it is tried next, while it waits.' }),
  givenUpAt: nullable({ ...Time, description: 'When it is given up, while it is not settled.' }),
  paused: Type.Boolean({ description: 'The operator has paused the queue that it waits in.' }),
})

const Step = Type.Object({
  command: Type.String({
    description: 'Its verb; `connect` for the greeting, `.` for the end of a message.',
  }),
  atMs: Type.Integer({
    description: 'Since the attempt began; the opening of its connection came before that.',
  }),
  code: Type.Integer(),
  enhancedStatus: nullable(Type.String()),
  text: Type.String({ description: 'The words of the reply; those that were cut end with `…`.' }),
})

const Conversation = Type.Object(
  {
    isReused: Type.Boolean({ description: 'The connection had carried a message before.' }),
    steps: Type.Array(Step),
  },
  { description: 'What was said: each command and its reply. Null where it is not known.' },
)

const Exchange = Type.Object({
  eventId: Uuid,
  cipher: nullable(Type.String({ description: 'The cipher suite of the connection, as OpenSSL names it.' })),
  stage: oneOfOrNull(['connect', 'mail', 'rcpt', 'data', 'message'], 'What the response answers.'),
  conversation: nullable(Conversation),
})

export const SubmissionLife = component(
  'SubmissionLife',
  Type.Object(
    {
      inboxId: nullable(InboxIdText),
      threadId: nullable({
        ...ThreadIdText,
        description: 'Null without a message, and where it was deleted.',
      }),
      messageId: nullable({
        ...MessageIdText,
        description: 'Null without a message, and where it was deleted.',
      }),
      recipients: Type.Array(Outlook, { description: 'In the order of the submission.' }),
      exchanges: Type.Array(Exchange, { description: 'Of the newest thousand events that have a server.' }),
    },
    { description: 'What a submission waits for, and how its servers were spoken to.' },
  ),
)

const Content = Type.Object({
  to: Type.Array(Mailbox.ref),
  replyTo: nullableMailbox(),
  text: Type.String(),
  html: nullable(safeHtml),
  remoteImages,
  cut: Type.Boolean({ description: 'Only the beginning of the text or of the HTML is shown.' }),
  keptUntil: { ...Time, description: 'When it is deleted; it stays longer while a recipient waits.' },
})

export const SubmissionContent = component(
  'SubmissionContent',
  Type.Object(
    { content: nullable(Content) },
    {
      description: 'The content of a send without an inbox; null: it is deleted, or the send has a message.',
    },
  ),
)

export const sendingComponents = [SubmissionLife.definition, SubmissionContent.definition]
