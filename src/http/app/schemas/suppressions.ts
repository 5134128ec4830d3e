// Schemas of suppressions as the dashboard shows and imports them: with a note, which those of the API lack.
import Type from 'typebox'
import { component, Email, GivenTime, NextCursor, nullable, patterned } from '../../schemas/scalars.ts'
import { Suppression } from '../../schemas/suppression.ts'

const { reason } = Suppression.definition.properties
const note = nullable(
  patterned('oneLine', {
    minLength: 1,
    maxLength: 200,
    description: 'The reason, as the previous provider gave it.',
  }),
)

export const NotedSuppression = component(
  'NotedSuppression',
  Type.Object(
    { ...Suppression.definition.properties, note },
    { description: 'A suppressed address, with the note from its import.' },
  ),
)

export const NotedSuppressionList = component(
  'NotedSuppressionList',
  Type.Object(
    { suppressions: Type.Array(NotedSuppression.ref), nextCursor: NextCursor },
    { description: 'Suppressions, newest first.' },
  ),
)

export const ImportedSuppression = component(
  'ImportedSuppression',
  Type.Object(
    {
      email: Email,
      reason,
      note,
      createdAt: nullable({
        ...GivenTime,
        description:
          'When the previous provider suppressed it. Null, or a time that is not in the past, counts as now.',
      }),
    },
    {
      additionalProperties: false,
      description: 'An address, with the information of a previous provider.',
      examples: [
        {
          email: 'former@example.com',
          reason: 'hard_bounce',
          note: '550 5.1.1 user unknown',
          createdAt: '2026-01-01T00:00:00Z',
        },
      ],
    },
  ),
)

export const suppressionComponents = [
  ...[NotedSuppression.definition, NotedSuppressionList.definition, ImportedSuppression.definition],
]
