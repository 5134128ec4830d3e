// Claims of what waits: who has one, when it is free again, and what that counts. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { Claims } from '../../src/flow/claims.ts'
import { putBackWork } from '../../src/store/work.ts'
import { addWork, joinAsNode } from '../support/claims.ts'
import { makePlace, startNode } from '../support/node.ts'

const organization = '00000000-0000-7000-8000-000000000001'
const wanted = { limit: 64, maxBytes: 1 << 20 }

/** It files nothing, reads no reports and scans nothing. */
const { foundation } = await startNode(await makePlace({ after }), { roles: ['api'] })
const { db, clock } = foundation
// A scan has no need of its message here.
await db.query('alter table scan drop constraint scan_message_id_fkey')

// Claims are for the work of all organizations, so each test begins with nothing to do.
beforeEach(async () => {
  for (const table of ['spool', 'kept_mail', 'scan']) await db.query(`delete from ${table}`)
})

for (const [kind, table] of [
  ['mail', 'spool'],
  ['report', 'kept_mail'],
  ['scan', 'scan'],
] as const)
  test(`${kind}: a claim is its node's until it is given back, its time is over, or the node is gone`, async (t) => {
    await addWork(foundation, kind, [{ id: 'one', organization }])
    const failures = async () =>
      (await db.query<{ failures: number }>(`select failures from ${table}`))[0]!.failures
    const [first, second] = [await joinAsNode(t, foundation), await joinAsNode(t, foundation)]
    const [mine, theirs] = [first.claims(kind), second.claims(kind)]
    const { claim, ids } = (await mine.take(wanted))!
    assert.deepEqual(ids, ['one'])
    for (const claims of [mine, theirs]) assert.deepEqual((await claims.take(wanted))!.ids, [])
    await mine.giveBack(claim, ids)
    assert.equal(await failures(), 0)

    const late = (await mine.take(wanted))!
    assert.deepEqual(late.ids, ['one'])
    await db.query(`update ${table} set claimed_until = now() - interval '1 s'`)
    const taken = (await theirs.take(wanted))!
    assert.deepEqual([taken.ids, await failures()], [['one'], 1])
    assert.deepEqual(await putBackWork(db.writer, late.claim, ['one'], { failures: 1 }), [])
    assert.equal(await failures(), 1)

    await second.leave()
    const [again] = (await mine.take(wanted))!.ids
    assert.deepEqual([again, await failures()], ['one', 2])
    assert.deepEqual(await putBackWork(db.writer, taken.claim, ['one']), [])
  })

test('a node without a number claims nothing', async () => {
  await addWork(foundation, 'mail', [{ id: 'one', organization }])
  const claims = new Claims({ db, clock, nodeId: () => null }, 'mail')
  assert.equal(await claims.take(wanted), null)
})

test('what was claimed and lost is taken alone', async (t) => {
  await addWork(
    foundation,
    'mail',
    ['one', 'two', 'three'].map((id) => ({ id, organization })),
  )
  const lost = await joinAsNode(t, foundation)
  assert.equal((await lost.claims('mail').take({ ...wanted, limit: 2 }))!.ids.length, 2)
  await lost.leave()
  const claims = (await joinAsNode(t, foundation)).claims('mail')
  const counts: number[] = []
  for (;;) {
    const { ids } = (await claims.take(wanted))!
    if (ids.length === 0) break
    counts.push(ids.length)
  }
  assert.deepEqual(counts, [1, 1, 1])
})

test('claims at the same time share the work: each has some, and none has the same', async (t) => {
  const all = Array.from({ length: 300 }, (_, i) => ({ id: `${i}`, organization }))
  await addWork(foundation, 'mail', all)
  const { claims } = await joinAsNode(t, foundation)
  const taken = await Promise.all(
    Array.from({ length: 6 }, () => claims('mail').take({ ...wanted, limit: 50 })),
  )
  assert.deepEqual(
    taken.map((one) => one!.ids.length),
    Array(6).fill(50),
  )
  assert.equal(new Set(taken.flatMap((one) => one!.ids)).size, 300)
})
