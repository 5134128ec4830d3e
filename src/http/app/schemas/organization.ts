// Schemas of an organization as its members see it: members, invitations, and the audit log.
import Type from 'typebox'
import {
  component,
  Email,
  NextCursor,
  nullable,
  oneOf,
  patterned,
  Time,
  Uuid,
} from '../../schemas/scalars.ts'
import { PersonName, password, token, tokenExample } from './people.ts'
import { roleOf } from './session.ts'

const organizationName = patterned('subject', {
  maxLength: 100,
  description: 'The name that members and the operator see.',
  examples: ['Example Ltd'],
})

export const OrganizationName = component(
  'OrganizationName',
  Type.Object(
    { name: organizationName },
    {
      additionalProperties: false,
      description: 'The name of the organization.',
      examples: [{ name: 'Example Ltd' }],
    },
  ),
)

const invitationExample = {
  id: '0199a1b2-4d5e-7f60-9b7c-2d3e4f5a6b7c',
  email: 'grace@example.com',
  role: 'member',
  createdAt: '2026-11-21T09:00:00.000Z',
  expiresAt: '2026-11-28T09:00:00.000Z',
}

export const Invitation = component(
  'Invitation',
  Type.Object(
    { id: Uuid, email: Email, role: roleOf, createdAt: Time, expiresAt: Time },
    { description: 'A mailed invitation.', examples: [invitationExample] },
  ),
)

const Member = Type.Object({
  personId: Uuid,
  email: Email,
  name: Type.String(),
  role: roleOf,
  createdAt: { ...Time, description: 'Member since this time.' },
  lastSeenAt: nullable({ ...Time, description: 'When the member last used a session in this organization.' }),
})

export const MemberList = component(
  'MemberList',
  Type.Object(
    { members: Type.Array(Member), invitations: Type.Array(Invitation.ref) },
    {
      description: 'The members, oldest first, and the open invitations.',
      examples: [
        {
          members: [
            {
              personId: '0199a1b2-3c4d-7e5f-8a6b-1c2d3e4f5a6b',
              email: 'ada@example.com',
              name: 'Ada Lovelace',
              role: 'owner',
              createdAt: '2026-11-20T09:00:00.000Z',
              lastSeenAt: '2026-11-21T09:00:00.000Z',
            },
          ],
          invitations: [invitationExample],
        },
      ],
    },
  ),
)

export const NewInvitation = component(
  'NewInvitation',
  Type.Object(
    { email: Email, role: roleOf },
    {
      additionalProperties: false,
      description: 'The person to invite.',
      examples: [{ email: 'grace@example.com', role: 'member' }],
    },
  ),
)

/** Whether to end or keep the objects that a member created, if the member's new role may not create such objects. */
export const madeChoice = oneOf(
  ['end', 'keep'],
  'For keys, webhooks and invitations that the member created and can no longer create. `end`: keys are revoked, webhooks disabled, open invitations withdrawn.',
)

export const RoleChange = component(
  'RoleChange',
  Type.Object(
    { role: roleOf, made: Type.Optional({ ...madeChoice, default: 'end' as const }) },
    { additionalProperties: false, description: 'The new role.', examples: [{ role: 'viewer' }] },
  ),
)

export const Made = component(
  'Made',
  Type.Object(
    {
      keys: Type.Array(
        Type.Object({ id: Uuid, name: Type.String(), createdAt: Time, expiresAt: nullable(Time) }),
      ),
      webhooks: Type.Array(Type.Object({ id: Type.String(), url: Type.String(), createdAt: Time })),
      invitations: Type.Array(Invitation.ref),
    },
    {
      description:
        'The valid keys, active webhooks and open invitations that a member created, oldest first.',
      examples: [
        {
          keys: [
            {
              id: '0199a1b2-4d5e-7f60-9b7c-2d3e4f5a6b7c',
              name: 'Booking server',
              createdAt: '2026-11-21T09:00:00.000Z',
              expiresAt: '2026-12-21T09:00:00.000Z',
            },
          ],
          webhooks: [
            {
              id: 'whk_0199a1b23c4d5e6f708192a3',
              url: 'https://app.example.com/hooks',
              createdAt: '2026-11-21T09:00:00.000Z',
            },
          ],
          invitations: [invitationExample],
        },
      ],
    },
  ),
)

export const InvitationPreview = component(
  'InvitationPreview',
  Type.Object(
    {
      organizationName: Type.String(),
      email: Email,
      role: roleOf,
      knownPerson: Type.Boolean({
        description: 'Whether the address has an account. The person must then sign in to it.',
      }),
    },
    {
      description: 'The invitation of the link.',
      examples: [
        { organizationName: 'Example Ltd', email: 'grace@example.com', role: 'member', knownPerson: false },
      ],
    },
  ),
)

export const InvitationAcceptance = component(
  'InvitationAcceptance',
  Type.Object(
    {
      token,
      name: Type.Optional({
        ...PersonName,
        description: 'Required without an account, with `password`.',
      }),
      password: Type.Optional({
        ...password,
        minLength: 1,
        description:
          'A new password of 10 to 200 characters, or, if not signed in, that of the existing account.',
      }),
    },
    {
      additionalProperties: false,
      description: 'The person who accepts the invitation.',
      examples: [{ token: tokenExample, name: 'Grace Hopper', password: 'correct horse battery staple' }],
    },
  ),
)

const auditExample = {
  id: '0199a1b2-5e6f-7081-92a3-3e4f5a6b7c8d',
  actor: 'ada@example.com',
  action: 'key.created',
  subject: 'Booking server',
  detail: { scopes: ['mailbox:send'] },
  ip: '192.0.2.7',
  at: '2026-11-21T09:00:00.000Z',
}

const AuditEntry = Type.Object({
  id: Uuid,
  actor: Type.String({ description: 'An email address, a key name followed by `(key)`, or `operator`.' }),
  action: Type.String({ description: 'The action.' }),
  subject: Type.String({ description: 'The object of the action.' }),
  detail: Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true }),
  ip: nullable(Type.String({ description: 'The IP address of the request. Null: this machine.' })),
  at: Time,
})

export const AuditLog = component(
  'AuditLog',
  Type.Object(
    { entries: Type.Array(AuditEntry), nextCursor: NextCursor },
    {
      description: 'The audit log, newest first.',
      examples: [{ entries: [auditExample], nextCursor: null }],
    },
  ),
)

export const organizationComponents = [
  ...[OrganizationName, Invitation, MemberList, NewInvitation, RoleChange, Made, InvitationPreview],
  ...[InvitationAcceptance, AuditLog],
].map(({ definition }) => definition)
