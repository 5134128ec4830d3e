// Notes each node that the tests of a run start; the runner prints how many there were.
import { appendFileSync } from 'node:fs'

export function countStart(): void {
  const starts = process.env['POSTHORN_TEST_STARTS']
  if (starts) appendFileSync(starts, `${process.argv[1]}\n`)
}
