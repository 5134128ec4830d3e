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
          'Anything that is written as an e-mail address is, internationalized ones (RFC 6531) included.',
      }),
    },
    {
      additionalProperties: false,
      description: 'An address to judge.',
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
        description: 'What is no address is a result as well.',
        examples: [['ada@example.com']],
      }),
    },
    {
      additionalProperties: false,
      description: 'Texts to judge as addresses.',
      examples: [{ emails: ['ada@example.com', 'nonsense'] }],
    },
  ),
)

const found = (description: string) => nullable(Type.Boolean({ description }))

const Checks = Type.Object(
  {
    syntax: found('It is an address that mail can be sent to.'),
    domain: found('The domain exists.'),
    mx: found('The domain has a mail server that can be reached.'),
    nullMx: found('The domain says that it takes no mail (RFC 7505).'),
    disposable: found('The domain, or one that it is under, gives mailboxes to throw away.'),
    role: found('The local part stands for a role, such as info or postmaster.'),
    freeProvider: found('The domain gives free mailboxes to everyone.'),
    mailbox: found('Whether the mailbox exists, as far as your own last deliveries to it say.'),
  },
  { description: 'What was looked at; null where it could not be known.' },
)

export const Validation = component(
  'Validation',
  Type.Object(
    {
      email: Type.String({ description: 'The address as it was given.' }),
      normalized: nullable(
        Type.String({ description: 'The form to write and send; null where it is none.' }),
      ),
      verdict: oneOf(
        ['deliverable', 'risky', 'undeliverable', 'unknown'],
        'What comes of it. Nobody is asked whether the mailbox exists; `unknown` may be known when you ask again.',
      ),
      reason: oneOf([...reasons], 'The first cause of the verdict, in this order.'),
      checks: Checks,
      suggestion: nullable(Type.String({ description: 'The address that was probably meant.' })),
      mxHosts: Type.Array(Type.String(), {
        description: 'The mail servers that can be reached, in the order to try.',
      }),
    },
    { description: 'What was found of an address.', examples: [example] },
  ),
)

export const ValidationList = component(
  'ValidationList',
  Type.Object(
    { results: Type.Array(Validation.ref) },
    { description: 'One result an address, in the order given.', examples: [{ results: [example] }] },
  ),
)

export const validationComponents = [GivenAddress, GivenAddresses, Validation, ValidationList]
