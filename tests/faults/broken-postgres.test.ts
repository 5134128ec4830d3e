// The short form of a database's disk that returns EIO; the whole is `npm run test:faults -- --broken-postgres 3`.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inReverse } from '../support/until.ts'
import { postgresFaults, runBrokenPostgres } from './broken-postgres.ts'
import { missingForFaultyPostgres } from './faulty-io.ts'
import { printLedger } from './ledger.ts'

test('check 86: after EIO and torn reads under PostgreSQL the service goes on, and no acknowledged mail is lost', async (t) => {
  const missing = missingForFaultyPostgres()
  assert.ok(!process.env['CI'] || !missing, `in CI nothing is skipped: ${missing}`)
  if (missing !== null) return t.skip(missing)
  const names = ['EIO at each flush of the log', 'half of each read of a table']
  const faults = postgresFaults.filter(({ name }) => names.includes(name))
  assert.equal(faults.length, names.length)
  const seed = Date.now() % 1_000_000
  const report = (line: string) => t.diagnostic(line)
  report(`seed ${seed}`)
  const ledger = await runBrokenPostgres(inReverse(t), { faults, rounds: 1, lengthMs: 1_000, seed, report })
  for (const line of printLedger(ledger).split('\n')) t.diagnostic(line)
  assert.deepEqual(ledger.violations, [])
})
