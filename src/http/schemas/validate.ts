// Schemas of addresses to validate, and of the results.
import Type from 'typebox'
import { reasons } from '../../flow/validation/validate.ts'
import { component, nullable, oneOf } from './scalars.ts'

const example = {
  email: 'Ada@gmail.con',
  normalized: 'Ada@gmail.con',
  verdict: 'undeliverable',
  reason: 'domain_not_found',
  checks: {
    syntax: true,
    domain: false,
    mx: null,
    nullMx: null,
    disposable: false,
    role: false,
    freeProvider: false,
    mailbox: null,
  },
  suggestion: 'Ada@gmail.com',
  mxHosts: [],
}

export const GivenAddress = component(
  'GivenAddress',
  Type.Object(
    {
      email: Type.String({
        format: 'email',
        maxLength: 320,
        description:
          'A text with the form of an email address. Internationalized addresses (RFC 6531) are allowed.',
      }),
    },
    {
      additionalProperties: false,
      description: 'The address to validate.',
      examples: [{ email: 'ada@example.com' }],
    },
  ),
)

export const GivenAddresses = component(
  'GivenAddresses',
  Type.Object(
    {
      emails: Type.Array(Type.String({ minLength: 1, maxLength: 320 }), {
        minItems: 1,
        maxItems: 100,
        description: 'A text that is not an address also gets a result.',
        examples: [['ada@example.com']],
      }),
    },
    {
      additionalProperties: false,
      description: 'The addresses to validate.',
      examples: [{ emails: ['ada@example.com', 'nonsense'] }],
    },
  ),
)

const found = (description: string) => nullable(Type.Boolean({ description }))

const Checks = Type.Object(
  {
    syntax: found('The syntax is valid: mail can be sent to the address.'),
    domain: found('The domain exists.'),
    mx: found('The domain has a reachable mail server.'),
    nullMx: found('The domain declares that it accepts no mail (RFC 7505).'),
    disposable: found('The domain, or a parent domain, offers disposable mailboxes.'),
    role: found('The local part is a role, such as info or postmaster.'),
    freeProvider: found('The domain offers free mailboxes.'),
    mailbox: found('Whether the mailbox exists, according to your own last deliveries to it.'),
  },
  { description: 'The result of each check. Null if unknown.' },
)

export const Validation = component(
  'Validation',
  Type.Object(
    {
      email: Type.String({ description: 'The address as given.' }),
      normalized: nullable(
        Type.String({
          description: 'The form to store and send to. Null: not an address.',
        }),
      ),
      verdict: oneOf(
        ['deliverable', 'risky', 'undeliverable', 'unknown'],
        'The overall result. No mail server is asked whether the mailbox exists. A later request may resolve `unknown`.',
      ),
      reason: oneOf([...reasons], 'The first cause, in the order of this list.'),
      checks: Checks,
      suggestion: nullable(Type.String({ description: 'The probably intended address.' })),
      mxHosts: Type.Array(Type.String(), {
        description: 'The reachable mail servers, in order of preference.',
      }),
    },
    { description: 'The result for an address.', examples: [example] },
  ),
)

export const ValidationList = component(
  'ValidationList',
  Type.Object(
    { results: Type.Array(Validation.ref) },
    { description: 'One result per address, in the given order.', examples: [{ results: [example] }] },
  ),
)

export const validationComponents = [GivenAddress, GivenAddresses, Validation, ValidationList]
