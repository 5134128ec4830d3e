// Schemas of inboxes: as answers show them, as requests give them, and a page of an export.
import Type from 'typebox'
import { Message, messageExample } from './message.ts'
import { component, InboxIdText, NextCursor, nullable, oneOf, patterned, Time, Uuid } from './scalars.ts'

const example = {
  id: 'inb_0199a1b23c4d5e6f708192a3',
  localPart: 'calm-otter-52814',
  domainId: null,
  domainKind: 'managed',
  domain: 'inbox.example.net',
  address: 'calm-otter-52814@inbox.example.net',
  displayName: 'Calm Otter',
  status: 'active',
  createdAt: '2026-11-21T09:00:00.000Z',
  updatedAt: '2026-11-21T09:00:00.000Z',
}

export const Inbox = component(
  'Inbox',
  Type.Object(
    {
      id: InboxIdText,
      localPart: Type.String({ description: 'The part before the @.' }),
      domainId: nullable({ ...Uuid, description: 'Null for the managed domain.' }),
      domainKind: oneOf(['managed', 'customer'], 'Managed domain, or your own domain.'),
      domain: Type.String({ description: 'The part after the @.' }),
      address: Type.String({ description: 'localPart@domain' }),
      displayName: Type.String({
        minLength: 1,
        maxLength: 200,
        description: 'The name that recipients see with the address.',
      }),
      status: oneOf(['active'], 'Deleted inboxes are not returned.'),
      createdAt: Time,
      updatedAt: Time,
    },
    { description: 'An address that sends and receives.', examples: [example] },
  ),
)

export const NewInbox = component(
  'NewInbox',
  Type.Object(
    {
      localPart: Type.Optional(
        patterned('localPart', { description: 'Converted to lower case. Default: a readable random name.' }),
      ),
      displayName: Type.Optional(
        patterned('subject', {
          minLength: 1,
          maxLength: 200,
          description: 'Trimmed. Default: the local part.',
        }),
      ),
      domainId: Type.Optional(
        patterned('uuid', {
          format: 'uuid',
          description: 'Your verified domain. Default: the managed domain.',
        }),
      ),
    },
    {
      additionalProperties: false,
      description: 'All fields are optional.',
      examples: [{ displayName: 'Calm Otter' }],
    },
  ),
)

export const InboxList = component(
  'InboxList',
  Type.Object(
    { inboxes: Type.Array(Inbox.ref), nextCursor: NextCursor },
    { description: 'Inboxes, newest first.', examples: [{ inboxes: [example], nextCursor: null }] },
  ),
)

export const InboxExport = component(
  'InboxExport',
  Type.Object(
    {
      formatVersion: Type.Integer({ description: 'The format of the page: 1.' }),
      inbox: Inbox.ref,
      messages: Type.Array(Message.ref),
      nextCursor: NextCursor,
    },
    {
      description: 'An inbox and its messages, oldest first.',
      examples: [{ formatVersion: 1, inbox: example, messages: [messageExample], nextCursor: null }],
    },
  ),
)

export const inboxComponents = [Inbox, NewInbox, InboxList, InboxExport]
