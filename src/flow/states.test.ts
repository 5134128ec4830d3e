// When ownership or a capability of a domain is won, kept and lost.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { DomainState, Standing } from '../store/domains/domains.ts'
import { domainMoves, nextStanding } from './states.ts'

type Result = 'holds' | 'broken' | 'unknown'

const untouched: Standing = { reasons: [], checkedAt: null, failures: 0, failingSince: null }
const hourMs = 3_600_000
const startMs = Date.UTC(2026, 10, 21)

/** The states after each of the checks, given by hour and result. */
function walk(state: DomainState, checks: [hour: number, result: Result][]): DomainState[] {
  let current = { state, standing: untouched }
  return checks.map(([hour, result]) => {
    const verdict = { result, reasons: result === 'holds' ? [] : ['why'] }
    const at = new Date(startMs + hour * hourMs)
    current = nextStanding(current.state, current.standing, verdict, at)
    assert.deepEqual(current.standing.reasons, verdict.reasons)
    assert.equal(current.standing.checkedAt, at.toISOString())
    return current.state
  })
}

const lives: [what: string, from: DomainState, checks: [number, Result][], last: DomainState][] = [
  [
    'nothing found yet',
    'pending',
    [
      [0, 'broken'],
      [100, 'broken'],
      [200, 'broken'],
    ],
    'pending',
  ],
  [
    'found',
    'pending',
    [
      [0, 'broken'],
      [1, 'holds'],
    ],
    'verified',
  ],
  [
    'three failures within an hour',
    'verified',
    [
      [0, 'broken'],
      [0.5, 'broken'],
      [1, 'broken'],
    ],
    'verified',
  ],
  [
    'two failures over 72 h',
    'verified',
    [
      [0, 'broken'],
      [72, 'broken'],
    ],
    'verified',
  ],
  [
    'daily failures up to 71 h',
    'verified',
    [
      [0, 'broken'],
      [24, 'broken'],
      [48, 'broken'],
      [71.9, 'broken'],
    ],
    'verified',
  ],
  [
    'daily failures over 72 h',
    'verified',
    [
      [0, 'broken'],
      [24, 'broken'],
      [48, 'broken'],
      [72, 'broken'],
    ],
    'failed',
  ],
  [
    'a good check between',
    'verified',
    [
      [0, 'broken'],
      [24, 'broken'],
      [48, 'holds'],
      [72, 'broken'],
      [100, 'broken'],
    ],
    'verified',
  ],
  [
    'DNS down for a year',
    'verified',
    [
      [0, 'unknown'],
      [100, 'unknown'],
      [200, 'unknown'],
      [8_760, 'unknown'],
    ],
    'verified',
  ],
  [
    'DNS down after a failure',
    'verified',
    [
      [0, 'broken'],
      [100, 'unknown'],
      [200, 'unknown'],
      [300, 'broken'],
    ],
    'verified',
  ],
  [
    'back again',
    'failed',
    [
      [0, 'broken'],
      [1, 'unknown'],
      [2, 'holds'],
    ],
    'verified',
  ],
]

for (const [what, from, checks, last] of lives) {
  test(`a use that was ${from} becomes ${last}: ${what}`, () => assert.equal(walk(from, checks).at(-1), last))
}

test('a use is lost only after three failures over 72 h, and every transition is legal', () => {
  const results = fc.constantFrom<Result>('holds', 'broken', 'unknown')
  const check = fc.tuple(fc.integer({ min: 0, max: 40 }), results)
  fc.assert(
    fc.property(fc.array(check, { maxLength: 40 }), (steps) => {
      let hour = 0
      const checks = steps.map(([hours, result]): [number, Result] => [(hour += hours), result])
      const states = walk('pending', checks)
      states.forEach((state, index) => {
        const before = states[index - 1] ?? 'pending'
        assert.ok(state === before || domainMoves[before].includes(state))
        if (state !== 'failed' || before === 'failed') return
        const held = checks.findLastIndex(([, result], at) => at <= index && result === 'holds')
        const failures = checks.slice(held + 1, index + 1).filter(([, result]) => result === 'broken')
        assert.ok(failures.length >= 3 && checks[index]![0] - failures[0]![0] >= 72)
      })
    }),
  )
})
