// The short form of the losses of a Patroni cluster's leader; the whole is `npm run test:faults -- --leader 10`.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runLeaderLosses } from './leader-loss.ts'
import { printLedger } from './ledger.ts'
import { missingForPatroni } from './patroni.ts'

test('check 85a: a leader that is switched over and one that is cut off lose and double no acknowledged mail', async (t) => {
  const missing = missingForPatroni()
  assert.ok(!process.env['CI'] || !missing, `in CI nothing is skipped: ${missing}`)
  if (missing !== null) return t.skip(missing)
  const seed = Date.now() % 1_000_000
  t.diagnostic(`seed ${seed}`)
  const ledger = await runLeaderLosses(t, {
    plan: ['switched over', 'cut off'],
    pace: { ttl: 8, loop_wait: 1, retry_timeout: 3 },
    seed,
    report: (line) => t.diagnostic(line),
  })
  for (const line of printLedger(ledger).split('\n')) t.diagnostic(line)
  assert.deepEqual(ledger.violations, [])
})
