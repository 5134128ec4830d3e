// An outage is logged once at its beginning and once at its end.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { OutageLog } from './outage-log.ts'

function watch(quietMs: number) {
  const lines: Record<string, unknown>[] = []
  const log = pino({ base: null }, { write: (line) => void lines.push(JSON.parse(line)) })
  return { lines, outage: new OutageLog({ log, work: 'filing', quietMs }) }
}

test('outage log: the first failure logs its reason, and the first success logs the recovery', () => {
  const { lines, outage } = watch(0)
  outage.succeed()
  for (const error of [new AggregateError([], ''), new Error('second')]) outage.fail(error)
  outage.succeed()
  outage.succeed()
  assert.deepEqual(
    lines.map(({ work, reason, failures, msg }) => [work, reason, failures, msg]),
    [
      ['filing', 'AggregateError', undefined, 'unavailable; further failures are counted'],
      ['filing', undefined, 2, 'available again'],
    ],
  )
})

test('outage log: a success just after a failure does not end an outage that needs a quiet period', () => {
  const { lines, outage } = watch(60_000)
  outage.fail(new Error('first'))
  outage.succeed()
  outage.fail(new Error('second'))
  assert.equal(lines.length, 1)
})
