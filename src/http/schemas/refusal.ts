// Schema of the one body that every error has.
import Type from 'typebox'
import { component } from './scalars.ts'

export const Refusal = component(
  'ErrorBody',
  Type.Object(
    {
      error: Type.String({ description: 'A stable code for programs.' }),
      message: Type.String({ description: 'The problem and what to do, for people. The text may change.' }),
    },
    {
      additionalProperties: false,
      description: 'The reason why the request was refused.',
      examples: [{ error: 'not_found', message: 'There is no such thread.' }],
    },
  ),
)
