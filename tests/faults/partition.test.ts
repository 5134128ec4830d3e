// The short form of a node with a bad network to the database; the whole is `npm run test:faults -- --partition 3`.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inReverse } from '../support/until.ts'
import { printLedger } from './ledger.ts'
import { missingForNetworks } from './net-namespace.ts'
import { netFaults, runPartition } from './partition.ts'

test('check 94: a node that loses its database for some seconds, or has a slow one, loses no mail and heals by itself', async (t) => {
  const missing = missingForNetworks()
  if (missing !== null) return t.skip(missing)
  const names = ['the database gets no packet of the node', '100 ms to the database']
  const faults = netFaults.filter(({ name }) => names.includes(name))
  assert.equal(faults.length, names.length)
  const seed = Date.now() % 1_000_000
  const report = (line: string) => t.diagnostic(line)
  report(`seed ${seed}`)
  const ledger = await runPartition(inReverse(t), { faults, rounds: 1, lengthMs: 3_000, seed, report })
  for (const line of printLedger(ledger).split('\n')) t.diagnostic(line)
  assert.deepEqual(ledger.violations, [])
})
