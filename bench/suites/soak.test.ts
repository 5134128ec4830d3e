// The verdicts of a soak.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatTrends } from './soak.ts'

function verdictsOf(count: number): string[] {
  const minutes = Array.from({ length: count }, (_, minute) => minute)
  const samples = minutes.map((minute) => ({
    still: 100 + (minute % 2) / 10,
    noisy: 100 + (Math.ceil(minute / 2) % 2) * 60,
    'rising slowly': 100 + minute / 60,
    rising: 100 + minute,
    falling: 200 - minute,
  }))
  const lines = formatTrends({ minutes, samples, missed: [] }, 0).split('\n')
  return lines.slice(1, -1).map((line) => line.split(': ').at(-1)!)
}

test('a trend is flat or grows only if its error allows no other verdict', () => {
  assert.deepEqual(verdictsOf(40), ['flat', 'unclear', 'flat', 'grows', 'falls'])
  assert.deepEqual(verdictsOf(2), Array(5).fill('unclear'))
})
