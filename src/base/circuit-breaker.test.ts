// A circuit opens after failures in a row, waits, probes, and lets one call through before all others.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { CircuitBreaker } from './circuit-breaker.ts'

/** Steps of calls: fail (f), succeed (s), release (r), stay open (?); a wait ending with a probe, alive (+) or dead (-). */
const cases: [what: string, steps: string, admitted: string][] = [
  ['failures in a row open it', 'ff?f?', 'yyyyn'],
  ['an answer in between begins anew', 'ffsff?', 'yyyyyy'],
  ['a failed probe leaves it open', 'fff-?-?', 'yyynn'],
  ['a probe lets one call through', 'fff+?', 'yyyy'],
  ['a probe lets no second call through', 'fff+??', 'yyyyn'],
  ['a success after a probe closes it', 'fff+s??', 'yyyyyy'],
  ['a failure after a probe opens it at once', 'fff+f?-?+?', 'yyyynny'],
  ['a call without result lets another call through', 'fff+r??', 'yyyyyn'],
]

/** Runs the steps. Returns `y` or `n` for each call, admitted or not. */
async function run(t: TestContext, steps: string): Promise<string> {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let isAlive = false
  const circuit = new CircuitBreaker({ maxFailures: 3, restMs: 1_000, probe: async () => isAlive })
  let admitted = ''
  for (const step of steps) {
    if (step === '+' || step === '-') {
      isAlive = step === '+'
      t.mock.timers.tick(1_000)
      await new Promise(setImmediate)
      continue
    }
    admitted += circuit.admit() ? 'y' : 'n'
    if (step === 'f') circuit.fail()
    if (step === 's') circuit.succeed()
    if (step === 'r') circuit.release()
  }
  circuit.stop()
  return admitted
}

for (const [what, steps, admitted] of cases)
  test(`circuit breaker: ${what}: ${steps}`, async (t) => assert.equal(await run(t, steps), admitted))

test('late failures do not open the circuit twice, and a late success closes it', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const circuit = new CircuitBreaker({ maxFailures: 1, restMs: 1_000, probe: async () => false })
  assert.deepEqual([circuit.admit(), circuit.admit(), circuit.admit()], [true, true, true])
  circuit.fail()
  circuit.fail()
  assert.equal(circuit.admit(), false)
  circuit.succeed()
  assert.equal(circuit.admit(), true)
})
