// The short form of a service with a limit of memory; longer forms are `npm run test:faults -- --memory 1024`.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inReverse } from '../support/until.ts'
import { printLedger } from './ledger.ts'
import { runMemory } from './memory.ts'
import { missingForMemory } from './memory-group.ts'

test('a service with its PostgreSQL in 1 GiB of memory is not killed under hostile load', async (t) => {
  const missing = missingForMemory()
  if (missing !== null) return t.skip(missing)
  const seed = Date.now() % 1_000_000
  const report = (line: string) => t.diagnostic(line)
  report(`seed ${seed}`)
  const options = { workers: 1, limitMegabytes: 1_024, seconds: 3, kills: 0, seed, report }
  const ledger = await runMemory(inReverse(t), options)
  for (const line of printLedger(ledger).split('\n')) t.diagnostic(line)
  assert.deepEqual(ledger.violations, [])
})
