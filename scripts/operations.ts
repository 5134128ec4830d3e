// Prints every operation as a table: what an organization that is not active gets of it, and its entries in the audit log.
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
