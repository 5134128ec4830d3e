// Schemas of keys as the dashboard makes and lists them.
import Type from 'typebox'
import {
  longestServerDays,
  memberKinds,
  memberScopes,
  serverScopes,
} from '../../../flow/accounts/member-keys.ts'
import {
  Count,
  component,
  Email,
  InboxIdText,
  NextCursor,
  nullable,
  oneOf,
  patterned,
  Time,
  Uuid,
} from '../../schemas/scalars.ts'

const givenScopes = [...memberScopes, ...serverScopes]

export const KeyParams = Type.Object({ keyId: Uuid })

const name = patterned('subject', { maxLength: 100, description: 'The name of the key.' })
const sendMode = oneOf(['new_and_reply', 'reply_only'], 'Whether the key can start conversations.')

const confirmNewRecipients = Type.Boolean({
  description:
    'True: only a person may send the first message to an address. The key may write to addresses that wrote to the inbox, or got mail from it. Mail that DMARC shows to be forged does not count.',
})

const keyExample = {
  id: '0199a1b2-4d5e-7f60-9b7c-2d3e4f5a6b7c',
  name: 'Booking server',
  kind: 'dashboard',
  scopes: ['mailbox:read', 'mailbox:send'],
  inboxIds: null,
  allowedIps: null,
  sendMode: 'new_and_reply',
  allowedRecipientDomains: null,
  confirmNewRecipients: false,
  requestsPerMinute: 600,
  expiresAt: '2026-12-21T09:00:00.000Z',
  createdAt: '2026-11-21T09:00:00.000Z',
  revokedAt: null,
  lastUsedAt: null,
  madeBy: { name: 'Ada Lovelace', email: 'ada@example.com' },
}

export const Key = component(
  'Key',
  Type.Object(
    {
      id: Uuid,
      name: Type.String(),
      kind: oneOf(
        ['agent', 'server', 'dashboard'],
        'The kind of client. `dashboard`: the default of keys created there.',
      ),
      scopes: Type.Array(Type.String(), { description: 'Its permissions; `*` is every scope.' }),
      inboxIds: nullable(Type.Array(Type.String(), { description: 'The allowed inboxes. Null: all.' })),
      allowedIps: nullable(
        Type.Array(Type.String(), {
          description: 'The allowed caller IP addresses. Null: any.',
        }),
      ),
      sendMode,
      allowedRecipientDomains: nullable(
        Type.Array(Type.String(), { description: 'The allowed recipient domains. Null: any.' }),
      ),
      confirmNewRecipients,
      requestsPerMinute: { ...Count, description: 'Requests per minute.' },
      expiresAt: nullable({ ...Time, description: 'Refused from this time on. Null: never.' }),
      createdAt: Time,
      revokedAt: nullable(Time),
      lastUsedAt: nullable({ ...Time, description: 'Precise to the minute.' }),
      madeBy: nullable(
        Type.Object(
          { name: Type.String(), email: Email },
          {
            description:
              'The person who created the key and may have left since. Null: the operator, or a deleted account.',
          },
        ),
      ),
    },
    { description: 'A key, without its secret.', examples: [keyExample] },
  ),
)

export const KeyList = component(
  'KeyList',
  Type.Object(
    { keys: Type.Array(Key.ref), nextCursor: NextCursor },
    { description: 'Keys, newest first.', examples: [{ keys: [keyExample], nextCursor: null }] },
  ),
)

export const KeyWithSecret = component(
  'KeyWithSecret',
  Type.Object(
    {
      key: Key.ref,
      secret: Type.String({
        description: 'For the header x-api-key. Shown only once.',
      }),
    },
    {
      description: 'A new key.',
      examples: [{ key: keyExample, secret: 'ph_0Zk3vXw9QyR7Tt2LmN5pB8cD1fG4hJ6kS9aV2xE7uY0oI3qWZzYyXx' }],
    },
  ),
)

export const NewKey = component(
  'NewKey',
  Type.Object(
    {
      name,
      kind: Type.Optional({
        ...oneOf(
          [...memberKinds],
          '`agent`: mail sent with it is marked as automatic. `server`: the operator must have granted it.',
        ),
        default: 'dashboard' as const,
      }),
      scopes: Type.Array(oneOf([...givenScopes], 'A permission.'), {
        minItems: 1,
        maxItems: givenScopes.length,
        uniqueItems: true,
        description: `The permissions of the key. ${serverScopes.join(' and ')} require kind server.`,
      }),
      inboxIds: Type.Optional(
        nullable(
          Type.Array(InboxIdText, {
            minItems: 1,
            maxItems: 100,
            uniqueItems: true,
            description: 'The allowed inboxes. Null or omitted: all, including future inboxes.',
          }),
        ),
      ),
      allowedIps: Type.Optional(
        nullable(
          Type.Array(Type.String({ maxLength: 50 }), {
            minItems: 1,
            maxItems: 100,
            uniqueItems: true,
            description: 'The allowed caller IP addresses, IPv4 or IPv6. Null or omitted: any.',
          }),
        ),
      ),
      sendMode: Type.Optional(sendMode),
      allowedRecipientDomains: Type.Optional(
        nullable(
          Type.Array(Type.String({ maxLength: 300 }), {
            minItems: 1,
            maxItems: 100,
            uniqueItems: true,
            description: 'The allowed recipient domains. Null or omitted: any.',
          }),
        ),
      ),
      confirmNewRecipients: Type.Optional({ ...confirmNewRecipients, default: false }),
      requestsPerMinute: Type.Optional(
        nullable(
          Type.Integer({
            minimum: 1,
            maximum: 1_000_000,
            description:
              'Requests per minute with this key, up to the limit of the organization, which is the default.',
          }),
        ),
      ),
      expiresInDays: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: longestServerDays,
          default: 30,
          description: 'Lifetime in days: up to 30, or up to 365 for kind server.',
        }),
      ),
    },
    {
      additionalProperties: false,
      description: 'The key to create.',
      examples: [{ name: 'Booking server', scopes: ['mailbox:read', 'mailbox:send'] }],
    },
  ),
)

export const KeyRotation = component(
  'KeyRotation',
  Type.Object(
    { name },
    {
      additionalProperties: false,
      description: 'The name of the new key.',
      examples: [{ name: 'Booking server, December' }],
    },
  ),
)

export const keyComponents = [Key, KeyList, KeyWithSecret, NewKey, KeyRotation].map(
  ({ definition }) => definition,
)
