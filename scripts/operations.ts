// Prints a table of all operations: what inactive organizations get from each, and its audit log entries.
import { inactiveStates, rows } from '../tests/support/operations.ts'

const lines = [
  ['operation', ...inactiveStates, 'audit log'],
  ['---', ...inactiveStates.map(() => '---'), '---'],
  ...rows.map(({ name, outcomes, recorded }) => [
    `\`${name}\``,
    ...inactiveStates.map((state) => outcomes[state]),
    'none' in recorded ? `none: ${recorded.none}` : recorded.join(', '),
  ]),
]
for (const cells of lines) console.log(`| ${cells.join(' | ')} |`)
