// Windows of whole hours, and percentiles from buckets.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { percentilesOf, windowOf } from './read-metrics.ts'

test('a window ends now, within its last hour', () => {
  const cases: [now: string, hours: number, from: string, until: string][] = [
    ['2026-11-21T09:30:00.000Z', 1, '2026-11-21T09:00:00.000Z', '2026-11-21T10:00:00.000Z'],
    ['2026-11-21T09:00:00.000Z', 1, '2026-11-21T09:00:00.000Z', '2026-11-21T10:00:00.000Z'],
    ['2026-11-21T23:59:59.999Z', 24, '2026-11-21T00:00:00.000Z', '2026-11-22T00:00:00.000Z'],
    ['2026-11-21T09:30:00.000Z', 720, '2026-10-22T10:00:00.000Z', '2026-11-21T10:00:00.000Z'],
  ]
  for (const [now, hours, from, until] of cases) {
    const window = windowOf(Date.parse(now), hours)
    const told = [window.from, window.to, window.until].map((time) => time.toISOString())
    assert.deepEqual(told, [from, now, until])
  }
})

test('percentiles differ by at most 9.1 %', () => {
  const bucketOf = (ms: number) => Math.floor(4 * Math.log2(Math.max(1, ms)))
  const latencies = fc.array(fc.integer({ min: 1, max: 268_000_000 }), { minLength: 1, maxLength: 200 })
  fc.assert(
    fc.property(latencies, (values) => {
      const counts = new Array<number>(112).fill(0)
      for (const value of values) counts[bucketOf(value)]!++
      const found = percentilesOf(counts)
      const ordered = values.toSorted((a, b) => a - b)
      for (const [name, fraction] of [
        ['p50', 0.5],
        ['p95', 0.95],
        ['p99', 0.99],
      ] as const) {
        const exact = ordered[Math.ceil(fraction * ordered.length) - 1]!
        assert.ok(
          Math.abs(found[name]! - exact) <= exact * 0.091 + 0.5,
          `${name} ${found[name]} for ${exact}`,
        )
      }
    }),
  )
  assert.deepEqual(percentilesOf([]), { p50: null, p95: null, p99: null })
})
