// A node joins again when its connection is lost, and stays out while it is not admitted.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testDatabase } from '../../tests/support/postgres.ts'
import { until } from '../../tests/support/until.ts'
import { Clock } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import { Db } from '../postgres/db.ts'
import { isNodeLock, listLivingNodes } from '../store/nodes.ts'
import { Membership } from './membership.ts'

test('membership: a returning node joins anew, and has no number until it is admitted', async (t) => {
  const db = new Db({ connection: await testDatabase(t) })
  t.after(() => db.close())
  let isAdmitted = true
  let asked = 0
  const admit = async () => {
    asked++
    if (!isAdmitted) throw new Error('the key was changed')
  }
  const options = { db, clock: new Clock(), log: silentLog, mark: null, program: null, admit }
  const membership = new Membership(options)
  await membership.start()
  t.after(() => membership.stop())
  const first = membership.nodeId
  assert.deepEqual([await listLivingNodes(db), asked], [[first], 1])

  isAdmitted = false
  await db.query(`select pg_terminate_backend(l.pid) from pg_locks l where ${isNodeLock} and l.objid = $1`, [
    first,
  ])
  await until('it to be asked again', () => asked > 2)
  await until('it to have left', async () => (await listLivingNodes(db)).length === 0)
  assert.equal(membership.nodeId, null)

  isAdmitted = true
  await until('it to be back', () => membership.nodeId !== null)
  assert.deepEqual(await listLivingNodes(db), [membership.nodeId])
  assert.notEqual(membership.nodeId, first)
})

test('membership: a node knows whether there are other nodes', async (t) => {
  const db = new Db({ connection: await testDatabase(t) })
  t.after(() => db.close())
  const options = { db, clock: new Clock(), log: silentLog, mark: null, program: null, admit: async () => {} }
  const [first, second] = [new Membership(options), new Membership(options)]
  t.after(() => Promise.all([first.stop(), second.stop()]))
  await first.start()
  await until('it to be alone', () => !first.hasOthers)
  await second.start()
  await until('both to know each other', () => first.hasOthers && second.hasOthers)
  await second.stop()
  await until('it to be alone again', () => !first.hasOthers)
})
