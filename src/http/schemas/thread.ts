// Schemas of threads: one with a page of its messages, or a list without messages.
import Type from 'typebox'
import { Message, messageExample } from './message.ts'
import { Count, component, InboxIdText, NextCursor, ThreadIdText, Time } from './scalars.ts'

const summary = {
  id: ThreadIdText,
  inboxId: InboxIdText,
  subject: Type.String(),
  participants: Type.Array(Type.String(), { description: 'Addresses, in order of first appearance.' }),
  messageCount: Count,
  lastMessageAt: Time,
}

const example = {
  id: 'thr_0199a1b23c4d5e6f708192a3',
  inboxId: 'inb_0199a1b23c4d5e6f708192a3',
  subject: 'Your table for two',
  participants: ['calm-otter-52814@inbox.example.net', 'ada@example.com'],
  messageCount: 1,
  lastMessageAt: '2026-11-21T09:00:00.000Z',
}

export const Thread = component(
  'Thread',
  Type.Object(
    { ...summary, messages: Type.Array(Message.ref), nextCursor: NextCursor },
    {
      description: 'A conversation, its messages oldest first.',
      examples: [{ ...example, messages: [messageExample], nextCursor: null }],
    },
  ),
)

const ThreadSummary = component(
  'ThreadSummary',
  Type.Object(summary, { description: 'A conversation.', examples: [example] }),
)

export const ThreadList = component(
  'ThreadList',
  Type.Object(
    { threads: Type.Array(ThreadSummary.ref), nextCursor: NextCursor },
    {
      description: 'Conversations, by newest message.',
      examples: [{ threads: [example], nextCursor: null }],
    },
  ),
)

export const threadComponents = [Thread, ThreadSummary, ThreadList]
