// Writes a batch again: as often as needed while its outcome is unknown, and once after other faults.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commitRows } from './commit.ts'
import { DbFault } from './db.ts'

const broken = new Error('Connection terminated unexpectedly')
const unknown = new DbFault(broken, { wasSent: true })
const unreachable = new DbFault(broken)

/** A write that fails with these faults, one a run, and then succeeds. */
function failing(...faults: DbFault[]) {
  const runs: string[][] = []
  const write = async (rows: string[]) => {
    runs.push(rows)
    const fault = faults.shift()
    if (fault) throw fault
    return rows.map((row) => `${row} written`)
  }
  return { runs, write }
}

test('rows run again until their unknown outcome is known', async () => {
  const { runs, write } = failing(unknown, unreachable, unreachable)
  assert.deepEqual(await commitRows(['a', 'b'], write), ['a written', 'b written'])
  assert.deepEqual(runs, Array(4).fill(['a', 'b']))
})

test('the outcome may become unknown in the second run', async () => {
  const { runs, write } = failing(unreachable, unknown, unreachable)
  assert.deepEqual(await commitRows(['a'], write), ['a written'])
  assert.equal(runs.length, 4)
})

for (const code of ['40P01', 'XX001'])
  test(`an answer with ${code} does not end the search for an unknown outcome`, async () => {
    const fault = new DbFault(Object.assign(new Error('an answer'), { code }))
    const { runs, write } = failing(unknown, fault)
    assert.deepEqual(await commitRows(['a'], write), ['a written'])
    assert.equal(runs.length, 3)
  })

test('a torn page that one row needs does not hold back the other rows', async () => {
  const damaged = new DbFault(Object.assign(new Error('read only 0 of 8192 bytes'), { code: 'XX001' }))
  const write = async (rows: string[]) => {
    if (rows.includes('b')) throw damaged
    return rows.map((row) => `${row} written`)
  }
  assert.deepEqual(await commitRows(['a', 'b', 'c'], write), ['a written', damaged, 'c written'])
})

test('while the outcome is unknown, a page that stays torn holds back only the row that needs it', async (t) => {
  const damaged = new DbFault(Object.assign(new Error('read only 0 of 8192 bytes'), { code: 'XX001' }))
  let [nowMs, isFirst] = [0, true]
  t.mock.method(performance, 'now', () => (nowMs += 1_000))
  let tries = 0
  const write = async (rows: string[]) => {
    if (isFirst) {
      isFirst = false
      throw unknown
    }
    if (rows.includes('b')) {
      tries++
      nowMs += 3_000
      throw damaged
    }
    return rows.map((row) => `${row} written`)
  }
  assert.deepEqual(await commitRows(['a', 'b', 'c'], write), ['a written', damaged, 'c written'])
  assert.ok(tries > 3, `${tries} tries`)
})

test('rows that no server has seen run once more', async () => {
  const { runs, write } = failing(unreachable, unreachable)
  await assert.rejects(commitRows(['a'], write), unreachable)
  assert.equal(runs.length, 2)
})
