// A tenth of the fault campaign, so that every test run includes kills; the whole is `npm run test:faults`.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runCampaign } from './campaign.ts'
import { printLedger } from './ledger.ts'

test('check 85a, check 28, check 31: five kills under load and one of PostgreSQL lose and break nothing', async (t) => {
  const seed = Date.now() % 1_000_000
  t.diagnostic(`seed ${seed}`)
  const ledger = await runCampaign(t, {
    kills: 5,
    postgresKills: process.env['POSTHORN_TEST_DATABASE_URL'] ? 0 : 1,
    seed,
    report: (line) => t.diagnostic(line),
  })
  for (const line of printLedger(ledger).split('\n')) t.diagnostic(line)
  assert.deepEqual(ledger.violations, [])
})
