// Schemas of an address with a display name, as messages show it and as senders give it.
import Type from 'typebox'
import { component, Email, patterned } from './scalars.ts'

const example = { email: 'ada@example.com', name: 'Ada Lovelace' }

/** An address as answers show it. Received mail may contain addresses that no sender could give. */
export const Mailbox = component(
  'Mailbox',
  Type.Object(
    {
      email: Type.String({ description: 'The address.' }),
      name: Type.Optional(Type.String({ description: 'The display name.' })),
    },
    { description: 'An address with a display name.', examples: [example] },
  ),
)

/** An address as requests give it. */
export const GivenMailbox = component(
  'GivenMailbox',
  Type.Object(
    {
      email: Email,
      name: Type.Optional(patterned('oneLine', { maxLength: 998, description: 'The display name.' })),
    },
    { additionalProperties: false, description: 'An address with a display name.', examples: [example] },
  ),
)
