// Schemas of people in the dashboard: signing up, signing in, and changing one's own data.
import Type from 'typebox'
import { maxListed } from '../../../flow/people/reset.ts'
import { component, Email, nullable, oneOf, patterned, Time, Uuid } from '../../schemas/scalars.ts'

export const password = Type.String({
  minLength: 10,
  maxLength: 200,
  description: '10 to 200 characters of any kind.',
  examples: ['correct horse battery staple'],
})
export const PersonName = patterned('subject', {
  maxLength: 100,
  description: 'The name that others see.',
  examples: ['Ada Lovelace'],
})
/** A password that is compared with the stored one, so no minimum length applies. */
const givenPassword = Type.String({ maxLength: 200, examples: ['correct horse battery staple'] })
export const tokenExample = 'aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789-_aBcDe'
export const token = Type.String({
  maxLength: 100,
  description: 'The part of the link after the #.',
  examples: [tokenExample],
})

export const Access = component(
  'Access',
  Type.Object(
    {
      signUp: Type.Boolean({ description: 'Whether anyone can sign up. If false, only invited people can.' }),
      oidc: nullable(
        Type.Object({ name: Type.String() }, { description: 'The identity provider. Null: none.' }),
      ),
      development: Type.Boolean({ description: 'Whether this deployment has no public mail host.' }),
      managedDomain: Type.String({
        description: 'The managed domain, for inboxes without their own domain.',
      }),
      hasOperatorApproval: Type.Boolean({ description: 'Whether the operator approves organizations.' }),
    },
    {
      description: 'The ways to sign in.',
      examples: [
        {
          signUp: true,
          oidc: { name: 'Example ID' },
          development: false,
          managedDomain: 'inbox.example.com',
          hasOperatorApproval: true,
        },
      ],
    },
  ),
)

export const NewPerson = component(
  'NewPerson',
  Type.Object(
    { email: Email, password, name: PersonName },
    {
      additionalProperties: false,
      description: 'The person who signs up.',
      examples: [
        { email: 'ada@example.com', password: 'correct horse battery staple', name: 'Ada Lovelace' },
      ],
    },
  ),
)

/** An answer that does not reveal whether an address has an account. */
export const Mailed = component(
  'Mailed',
  Type.Object(
    {},
    { additionalProperties: false, description: 'The mail has the next step.', examples: [{}] },
  ),
)

export const Credentials = component(
  'Credentials',
  Type.Object(
    { email: Email, password: givenPassword },
    {
      additionalProperties: false,
      description: 'An address and its password.',
      examples: [{ email: 'ada@example.com', password: 'correct horse battery staple' }],
    },
  ),
)

export const ResetRequest = component(
  'ResetRequest',
  Type.Object(
    { email: Email },
    {
      additionalProperties: false,
      description: 'The address of the account.',
      examples: [{ email: 'ada@example.com' }],
    },
  ),
)

const passkeyExample = {
  id: '0199a1b2-3c4d-7e5f-8a6b-1c2d3e4f5a6b',
  name: 'Laptop',
  createdAt: '2026-11-21T09:00:00.000Z',
  lastUsedAt: null,
}

const addedExample = {
  id: passkeyExample.id,
  kind: 'passkey',
  name: passkeyExample.name,
  organization: null,
  addedAt: passkeyExample.createdAt,
}

export const ResetPreview = component(
  'ResetPreview',
  Type.Object(
    {
      added: Type.Array(
        Type.Object({
          id: Type.String({ description: '`identity` for an identity provider.' }),
          kind: oneOf(
            ['passkey', 'identity', 'key', 'webhook', 'invitation'],
            'The last three were created in an organization of which the person is a member.',
          ),
          name: nullable(Type.String({ description: 'The URL of a webhook, the address of an invitation.' })),
          organization: nullable(Type.Object({ id: Uuid, name: Type.String() })),
          addedAt: Time,
        }),
        { description: 'The oldest 100 of each kind.' },
      ),
      unlisted: Type.Integer({ description: 'The number of further entries, which are removed.' }),
    },
    {
      description: 'Everything added since the address was last verified. It is removed unless it is kept.',
      examples: [{ added: [addedExample], unlisted: 0 }],
    },
  ),
)

export const ResetCompletion = component(
  'ResetCompletion',
  Type.Object(
    {
      token,
      password,
      keep: Type.Optional(
        Type.Array(Type.String({ maxLength: 36 }), {
          maxItems: 4 * maxListed + 1,
          description: 'The ids of the entries of the preview to keep.',
        }),
      ),
    },
    {
      additionalProperties: false,
      description: 'The token of the mailed link, and the new password.',
      examples: [{ token: tokenExample, password: 'correct horse battery staple' }],
    },
  ),
)

export const PersonChange = component(
  'PersonChange',
  Type.Object(
    { name: PersonName },
    {
      additionalProperties: false,
      description: 'The name that others see.',
      examples: [{ name: 'Ada King' }],
    },
  ),
)

export const PasswordChange = component(
  'PasswordChange',
  Type.Object(
    {
      current: Type.Optional({ ...givenPassword, description: 'The current password, if there is one.' }),
      password,
    },
    {
      additionalProperties: false,
      description: 'A new password.',
      examples: [{ current: 'correct horse battery staple', password: 'staple battery horse correct' }],
    },
  ),
)

export const Passkey = component(
  'Passkey',
  Type.Object(
    { id: Uuid, name: Type.String(), createdAt: Time, lastUsedAt: nullable(Time) },
    { description: 'One of your passkeys.', examples: [passkeyExample] },
  ),
)

export const PasskeyList = component(
  'PasskeyList',
  Type.Object(
    { passkeys: Type.Array(Passkey.ref) },
    { description: 'Your passkeys, oldest first.', examples: [{ passkeys: [passkeyExample] }] },
  ),
)

/** The browser's WebAuthn and its verification alone define this content. */
export const WebAuthnOptions = component(
  'WebAuthnOptions',
  Type.Unsafe<object>({
    type: 'object',
    additionalProperties: true,
    description: 'For `navigator.credentials`, as JSON (WebAuthn 5.1.9 and 5.1.10).',
    examples: [{ challenge: 'aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789-_aBcDe', rpId: 'mail.example.com' }],
  }),
)

const response = Type.Unsafe<object>({
  type: 'object',
  description: 'The response of the browser, as JSON.',
})

export const PasskeyBeginning = component(
  'PasskeyBeginning',
  Type.Object(
    {
      password: Type.Optional({
        ...givenPassword,
        description: 'Required if you signed in more than five minutes ago.',
      }),
    },
    {
      additionalProperties: false,
      description: 'Proof of your identity.',
      examples: [{ password: 'correct horse battery staple' }],
    },
  ),
)

export const NewPasskey = component(
  'NewPasskey',
  Type.Object(
    { name: patterned('subject', { maxLength: 100, description: 'Your name for the device.' }), response },
    {
      additionalProperties: false,
      description: 'A passkey that the browser created.',
      examples: [
        { name: 'Laptop', response: { id: 'q83v', rawId: 'q83v', type: 'public-key', response: {} } },
      ],
    },
  ),
)

export const PasskeyAnswer = component(
  'PasskeyAnswer',
  Type.Object(
    { response },
    {
      additionalProperties: false,
      description: 'The signed challenge of a passkey.',
      examples: [{ response: { id: 'q83v', rawId: 'q83v', type: 'public-key', response: {} } }],
    },
  ),
)

export const peopleComponents = [
  ...[Access, NewPerson, Mailed, Credentials, ResetRequest, ResetPreview, ResetCompletion],
  ...[PersonChange, PasswordChange],
  ...[Passkey, PasskeyList, WebAuthnOptions, PasskeyBeginning, NewPasskey, PasskeyAnswer],
].map(({ definition }) => definition)
