// Schema of the answer of GET /v1/me: the permissions of a key.
import Type from 'typebox'
import { Count, component, InboxIdText, nullable, oneOf, Time, Uuid } from './scalars.ts'

const Organization = Type.Object({
  id: Uuid,
  status: oneOf(['pending', 'active', 'suspended'], 'Only an active organization may call.'),
  sendLimits: Type.Object(
    {
      messagesPerMinute: { ...Count, description: 'In the 60 seconds from the first one.' },
      messagesPerDay: { ...Count, description: 'In the UTC day.' },
      recipientsPerDay: { ...Count, description: 'In the UTC day; suppressed ones do not count.' },
    },
    { description: 'How much may be sent.' },
  ),
})

const ApiKey = Type.Object({
  id: Uuid,
  kind: oneOf(['agent', 'server', 'dashboard'], 'Who the key was made for.'),
  scopes: Type.Array(Type.String(), { description: 'What it permits; `*` is every scope.' }),
  inboxIds: nullable(Type.Array(InboxIdText, { description: 'The only inboxes the key reaches, or null.' })),
  allowedIps: nullable(
    Type.Array(Type.String(), { description: 'The only addresses it may call from, or null.' }),
  ),
  sendMode: oneOf(['new_and_reply', 'reply_only'], 'Whether the key may begin conversations.'),
  allowedRecipientDomains: nullable(
    Type.Array(Type.String(), { description: 'The only domains it may send to, or null.' }),
  ),
  expiresAt: nullable({ ...Time, description: 'From then on it is refused; null: never.' }),
  requestsPerMinute: { ...Count, description: 'How often it may be used.' },
})

const PlatformLimits = Type.Object(
  {
    recipientsPerMessage: { ...Count, description: 'Of to, cc and bcc together.' },
    messageContentBytes: { ...Count, description: 'Of text, HTML and decoded attachments together.' },
    inboxes: { ...Count, description: 'At once.' },
    domains: { ...Count, description: 'At once.' },
    inboxesPerDomain: { ...Count, description: 'At once.' },
    webhookEndpoints: { ...Count, description: 'At once.' },
  },
  { description: 'How large and how many.' },
)

export const Profile = component(
  'Profile',
  Type.Object(
    {
      organization: Organization,
      apiKey: ApiKey,
      managedStarter: Type.Object(
        { limit: Count, used: Count, remaining: Count },
        { description: 'Inboxes on the managed domain, for life: deleting one does not give it back.' },
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
