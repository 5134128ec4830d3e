// Schema of the answer of GET /v1/me: the permissions of a key.
import Type from 'typebox'
import { Count, component, InboxIdText, nullable, oneOf, Time, Uuid } from './scalars.ts'

export const SendLimits = Type.Object(
  {
    messagesPerMinute: { ...Count, description: 'In the 60 seconds from the first message.' },
    messagesPerDay: { ...Count, description: 'In a UTC day.' },
    recipientsPerDay: { ...Count, description: 'In a UTC day. Suppressed recipients do not count.' },
  },
  {
    description: 'Sending limits.',
    examples: [{ messagesPerMinute: 60, messagesPerDay: 2000, recipientsPerDay: 5000 }],
  },
)

const Organization = Type.Object({
  id: Uuid,
  status: oneOf(['pending', 'active', 'suspended'], 'Only an active organization can call the API.'),
  sendLimits: SendLimits,
})

const ApiKey = Type.Object({
  id: Uuid,
  kind: oneOf(['agent', 'server', 'dashboard'], 'The kind of client.'),
  scopes: Type.Array(Type.String(), { description: 'Its permissions; `*` is every scope.' }),
  inboxIds: nullable(Type.Array(InboxIdText, { description: 'The allowed inboxes. Null: all.' })),
  allowedIps: nullable(
    Type.Array(Type.String(), {
      description: 'The allowed caller IP addresses. Null: any.',
    }),
  ),
  sendMode: oneOf(['new_and_reply', 'reply_only'], 'Whether the key can start conversations.'),
  allowedRecipientDomains: nullable(
    Type.Array(Type.String(), { description: 'The allowed recipient domains. Null: any.' }),
  ),
  expiresAt: nullable({ ...Time, description: 'Refused from this time on. Null: never.' }),
  requestsPerMinute: { ...Count, description: 'Requests per minute.' },
})

const PlatformLimits = Type.Object(
  {
    recipientsPerMessage: { ...Count, description: 'Total of to, cc and bcc.' },
    messageContentBytes: { ...Count, description: 'Total size of text, HTML and decoded attachments.' },
    inboxes: { ...Count, description: 'At a time.' },
    domains: { ...Count, description: 'At a time.' },
    inboxesPerDomain: { ...Count, description: 'At a time.' },
    webhookEndpoints: { ...Count, description: 'At a time.' },
  },
  { description: 'Limits on sizes and counts.' },
)

export const Profile = component(
  'Profile',
  Type.Object(
    {
      organization: Organization,
      apiKey: ApiKey,
      managedStarter: Type.Object(
        { limit: Count, used: Count, remaining: Count },
        { description: 'Inboxes ever opened on the managed domain. Deleted inboxes still count.' },
      ),
      platformLimits: PlatformLimits,
    },
    {
      description: 'The organization, the key and their limits.',
      examples: [
        {
          organization: {
            id: '0199a1b2-3c4d-7e5f-8a6b-1c2d3e4f5a6b',
            status: 'active',
            sendLimits: { messagesPerMinute: 60, messagesPerDay: 2000, recipientsPerDay: 5000 },
          },
          apiKey: {
            id: '0199a1b2-4d5e-7f60-9b7c-2d3e4f5a6b7c',
            kind: 'agent',
            scopes: ['mailbox:manage', 'mailbox:read', 'mailbox:send'],
            inboxIds: null,
            allowedIps: null,
            sendMode: 'new_and_reply',
            allowedRecipientDomains: null,
            expiresAt: '2026-12-21T09:00:00.000Z',
            requestsPerMinute: 600,
          },
          managedStarter: { limit: 5, used: 1, remaining: 4 },
          platformLimits: {
            recipientsPerMessage: 50,
            messageContentBytes: 10485760,
            inboxes: 100,
            domains: 10,
            inboxesPerDomain: 50,
            webhookEndpoints: 10,
          },
        },
      ],
    },
  ),
)
