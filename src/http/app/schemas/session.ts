// Schemas of the current session and of the person's sessions.
import Type from 'typebox'
import { component, Email, nullable, oneOf, Time, Uuid } from '../../schemas/scalars.ts'

export const roleOf = oneOf(
  ['owner', 'member', 'viewer'],
  'What a member may do: everything, everything but members and the name, or look.',
)

const Membership = Type.Object({
  id: Uuid,
  name: Type.String(),
  status: oneOf(['pending', 'active', 'suspended'], 'A pending one waits for the operator.'),
  role: roleOf,
  serverKeys: Type.Boolean({ description: 'Whether its members may make keys of the kind `server`.' }),
})

export const SessionView = component(
  'Session',
  Type.Object(
    {
      id: Uuid,
      csrfToken: Type.String({ description: 'Goes into the header x-posthorn-token of every change.' }),
      person: Type.Object({ id: Uuid, email: Email, name: Type.String(), hasPassword: Type.Boolean() }),
      organization: nullable(Membership),
      organizations: Type.Array(Membership),
      development: Type.Boolean({ description: 'Whether this deployment has no public mail host.' }),
      showsCaptured: Type.Boolean({ description: 'Whether mail is captured, and shown, instead of sent.' }),
      createdAt: Time,
    },
    { description: 'Who is signed in, and for which organization.' },
  ),
)

export const SessionList = component(
  'SessionList',
  Type.Object(
    {
      sessions: Type.Array(
        Type.Object({
          id: Uuid,
          current: Type.Boolean({ description: 'Whether it is the one that asks.' }),
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
    { token: Type.String({ maxLength: 100, description: 'What stands behind the # of the link.' }) },
    {
      additionalProperties: false,
      description: 'The secret of a link that is good once.',
      examples: [{ token: 'aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789-_aBcDe' }],
    },
  ),
)

export const sessionComponents = [SessionView.definition, SessionList.definition, LinkToken.definition]
