// Schemas of the dashboard's mail lists: inboxes by their newest message, and rows of conversations and found messages.
import Type from 'typebox'
import { Inbox } from '../../schemas/inbox.ts'
import { Mailbox } from '../../schemas/mailbox.ts'
import {
  Count,
  component,
  InboxIdText,
  MessageIdText,
  NextCursor,
  nullable,
  oneOf,
  ThreadIdText,
  Time,
} from '../../schemas/scalars.ts'

export const ActiveInboxList = component(
  'ActiveInboxList',
  Type.Object(
    {
      inboxes: Type.Array(
        Type.Object({
          inbox: Inbox.ref,
          lastMessageAt: nullable({ ...Time, description: 'Null: it has no mail.' }),
        }),
      ),
      nextCursor: NextCursor,
    },
    { description: 'Inboxes, the one with the newest message first.' },
  ),
)

const MailRow = component(
  'MailRow',
  Type.Object(
    {
      threadId: ThreadIdText,
      messageId: MessageIdText,
      inboxId: InboxIdText,
      address: Type.String({ description: 'The address of its inbox.' }),
      subject: Type.String(),
      direction: oneOf(['inbound', 'outbound'], 'Received or sent.'),
      from: Mailbox.ref,
      to: Type.Array(Mailbox.ref),
      snippet: Type.String({ description: 'The beginning of its new text.' }),
      hasFiles: Type.Boolean({ description: 'It has an attachment.' }),
      messageCount: { ...Count, description: 'The messages of the conversation; 1 for a found message.' },
      at: Time,
    },
    { description: 'A conversation with its newest message, or a found message.' },
  ),
)

export const ConversationList = component(
  'ConversationList',
  Type.Object(
    { rows: Type.Array(MailRow.ref), nextCursor: NextCursor },
    { description: 'Conversations, the one with the newest message first.' },
  ),
)

export const FoundMail = component(
  'FoundMail',
  Type.Object(
    {
      rows: Type.Array(MailRow.ref),
      complete: Type.Boolean({ description: 'Whether every message was searched.' }),
      indexing: Type.Boolean({
        description: 'Whether a later search may find more, because messages are being indexed.',
      }),
      nextCursor: NextCursor,
    },
    { description: 'Found messages, newest first.' },
  ),
)

export const mailListComponents = [
  ActiveInboxList.definition,
  MailRow.definition,
  ConversationList.definition,
  FoundMail.definition,
]
