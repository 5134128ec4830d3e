// Schema of the one body that every error has.
import Type from 'typebox'
import { component } from './scalars.ts'

export const Refusal = component(
  'Error',
  Type.Object(
    {
      error: Type.String({ description: 'A code for programs. It stays as it is.' }),
      message: Type.String({ description: 'What is wrong and what to do, for people. It may change.' }),
    },
    {
      additionalProperties: false,
      description: 'Why the request was refused.',
      examples: [{ error: 'not_found', message: 'There is no such thread.' }],
    },
  ),
)
