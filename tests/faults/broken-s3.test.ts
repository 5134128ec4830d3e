// The short form of an S3 that fails under load; the whole is `npm run test:faults -- --broken-s3 3`.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inReverse } from '../support/until.ts'
import { runBrokenS3, s3Faults } from './broken-s3.ts'
import { printLedger } from './ledger.ts'

test('check 88: an S3 that fails every third call or forgets uploads costs no acknowledged mail, and a lost object is named', async (t) => {
  const names = ['500 to every third call', 'acknowledges and forgets each upload']
  const faults = s3Faults.filter(({ name }) => names.includes(name))
  assert.equal(faults.length, names.length)
  const report = (line: string) => t.diagnostic(line)
  const ledger = await runBrokenS3(inReverse(t), { faults, rounds: 1, report })
  for (const line of printLedger(ledger).split('\n')) t.diagnostic(line)
  assert.deepEqual(ledger.violations, [])
})
