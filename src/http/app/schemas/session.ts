// Schemas of the current session and of the person's sessions.
import Type from 'typebox'
import { component, Email, nullable, oneOf, Time, Uuid } from '../../schemas/scalars.ts'

export const roleOf = oneOf(
  ['owner', 'member', 'viewer'],
  'The role: everything, everything except members and the name, or read only.',
)

const Membership = Type.Object({
  id: Uuid,
  name: Type.String(),
  status: oneOf(['pending', 'active', 'suspended'], '`pending`: waiting for approval.'),
  role: roleOf,
  serverKeys: Type.Boolean({ description: 'Whether members can create keys of kind `server`.' }),
})

export const SessionView = component(
  'Session',
  Type.Object(
    {
      id: Uuid,
      csrfToken: Type.String({
        description: 'Goes into the header x-posthorn-token of every change.',
      }),
      person: Type.Object({ id: Uuid, email: Email, name: Type.String(), hasPassword: Type.Boolean() }),
      organization: nullable(Membership),
      organizations: Type.Array(Membership),
      development: Type.Boolean({ description: 'Whether this deployment has no public mail host.' }),
      showsCaptured: Type.Boolean({
        description: 'Whether mail is captured and shown instead of delivered.',
      }),
      createdAt: Time,
    },
    { description: 'The session: the person and the organization.' },
  ),
)

export const SessionList = component(
  'SessionList',
  Type.Object(
    {
      sessions: Type.Array(
        Type.Object({
          id: Uuid,
          current: Type.Boolean({ description: 'Whether this is the session of the request.' }),
          userAgent: Type.String(),
          ip: Type.String(),
          createdAt: Time,
          lastUsedAt: Time,
        }),
      ),
    },
    { description: 'The sessions of the person, newest first.' },
  ),
)

export const LinkToken = component(
  'LinkToken',
  Type.Object(
    { token: Type.String({ maxLength: 100, description: 'The part of the link after the #.' }) },
    {
      additionalProperties: false,
      description: 'The secret of a one-time link.',
      examples: [{ token: 'aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789-_aBcDe' }],
    },
  ),
)

export const sessionComponents = [SessionView.definition, SessionList.definition, LinkToken.definition]
