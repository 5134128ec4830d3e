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

const name = patterned('subject', { maxLength: 100, description: 'What people call it.' })
const sendMode = oneOf(['new_and_reply', 'reply_only'], 'Whether it may begin conversations.')

const keyExample = {
  id: '0199a1b2-4d5e-7f60-9b7c-2d3e4f5a6b7c',
  name: 'Booking server',
  kind: 'dashboard',
  scopes: ['mailbox:read', 'mailbox:send'],
  inboxIds: null,
  allowedIps: null,
  sendMode: 'new_and_reply',
  allowedRecipientDomains: null,
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
      kind: oneOf(['agent', 'server', 'dashboard'], 'Who it was made for; `dashboard`: it was made there.'),
      scopes: Type.Array(Type.String(), { description: 'What it permits; `*` is every scope.' }),
      inboxIds: nullable(Type.Array(Type.String(), { description: 'The only inboxes it reaches, or null.' })),
      allowedIps: nullable(
        Type.Array(Type.String(), { description: 'The only addresses it may call from, or null.' }),
      ),
      sendMode,
      allowedRecipientDomains: nullable(
        Type.Array(Type.String(), { description: 'The only domains it may send to, or null.' }),
      ),
      requestsPerMinute: { ...Count, description: 'How often it may be used.' },
      expiresAt: nullable({ ...Time, description: 'From then on it is refused; null: never.' }),
      createdAt: Time,
      revokedAt: nullable(Time),
      lastUsedAt: nullable({ ...Time, description: 'To the minute.' }),
      madeBy: nullable(
        Type.Object(
          { name: Type.String(), email: Email },
          {
            description:
              'Who made it, who may have left since; null: the operator, or a person whose account is gone.',
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
        description: 'Goes into the header x-api-key. It is shown here and never again.',
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
        description: `Its permissions; ${serverScopes.join(' and ')} need the kind server.`,
      }),
      inboxIds: Type.Optional(
        nullable(
          Type.Array(InboxIdText, {
            minItems: 1,
            maxItems: 100,
            uniqueItems: true,
            description: 'The only inboxes it is to reach; null or omitted: all, those to come included.',
          }),
        ),
      ),
      allowedIps: Type.Optional(
        nullable(
          Type.Array(Type.String({ maxLength: 50 }), {
            minItems: 1,
            maxItems: 100,
            uniqueItems: true,
            description: 'The only addresses it may call from, IPv4 or IPv6; null or omitted: any.',
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
            description: 'The only domains it may send to; null or omitted: any.',
          }),
        ),
      ),
      requestsPerMinute: Type.Optional(
        nullable(
          Type.Integer({
            minimum: 1,
            maximum: 1_000_000,
            description:
              'How often it may be used, as much as the organization at most, which is what it has without it.',
          }),
        ),
      ),
      expiresInDays: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: longestServerDays,
          default: 30,
          description: 'Its lifetime: 30 at most, but 365 for the kind server.',
        }),
      ),
    },
    {
      additionalProperties: false,
      description: 'A key to be made.',
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
      description: 'What the new key is to be called.',
      examples: [{ name: 'Booking server, December' }],
    },
  ),
)

export const keyComponents = [Key, KeyList, KeyWithSecret, NewKey, KeyRotation].map(
  ({ definition }) => definition,
)
