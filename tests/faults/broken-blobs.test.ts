// The short form of a blob folder's disk that returns EIO; the whole is `npm run test:faults -- --broken-blobs 3`.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inReverse } from '../support/until.ts'
import { blobFaults, runBrokenBlobs } from './broken-blobs.ts'
import { missingForFaultyIo } from './faulty-io.ts'
import { printLedger } from './ledger.ts'

test('check 86: EIO and short writes under the blobs lose, tear and double no acknowledged mail', async (t) => {
  const missing = missingForFaultyIo()
  assert.ok(!process.env['CI'] || !missing, `in CI nothing is skipped: ${missing}`)
  if (missing !== null) return t.skip(missing)
  const names = ['EIO at each fsync', 'EIO after half of a write', 'half of each second write']
  const faults = blobFaults.filter(({ name }) => names.includes(name))
  assert.equal(faults.length, names.length)
  const report = (line: string) => t.diagnostic(line)
  const ledger = await runBrokenBlobs(inReverse(t), { faults, rounds: 1, report })
  for (const line of printLedger(ledger).split('\n')) t.diagnostic(line)
  assert.deepEqual(ledger.violations, [])
})
