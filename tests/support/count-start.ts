// Records each node that the tests of a run start, so that the runner can print their number.
import { appendFileSync } from 'node:fs'

export function countStart(): void {
  const starts = process.env['POSTHORN_TEST_STARTS']
  if (starts) appendFileSync(starts, `${process.argv[1]}\n`)
}
