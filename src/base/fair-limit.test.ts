// The limit of concurrent work, and the order of the askers.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FairLimit } from './fair-limit.ts'

test('fair limit: it bounds concurrent work, and a small asker does not wait for a large one', async () => {
  const limit = new FairLimit(2)
  const begun: string[] = []
  let open = 0
  const work = (name: string) => async () => {
    assert.ok(++open <= 2)
    begun.push(name)
    await new Promise(setImmediate)
    open--
  }
  const much = ['a1', 'a2', 'a3', 'a4', 'a5'].map((name) => limit.run('a', work(name)))
  await Promise.all([...much, limit.run('b', work('b1'))])
  assert.deepEqual(begun, ['a1', 'a2', 'a3', 'b1', 'a4', 'a5'])
})

test('fair limit: work that fails makes room for the next', async () => {
  const limit = new FairLimit(1)
  const failing = limit.run('a', async () => assert.fail('on purpose'))
  const next = limit.run('a', async () => 'done')
  await assert.rejects(failing, /on purpose/)
  assert.equal(await next, 'done')
})

test('hostile 8: fair limit: newcomers wait for earlier askers, and an asker’s backlog delays no other', async () => {
  const limit = new FairLimit(1)
  const begun: string[] = []
  const bring = (asker: string, name: string, also = () => {}): Promise<void> =>
    limit.run(asker, async () => {
      begun.push(name)
      await new Promise(setImmediate)
      also()
    })
  for (const name of ['a1', 'a2', 'a3', 'a4']) void bring('a', name)
  for (const name of ['b1', 'b2']) void bring('b', name)
  const last = Promise.withResolvers<void>()
  await bring('c', 'c1', () => {
    void bring('d', 'd1')
    void bring('b', 'b3').then(last.resolve)
  })
  await last.promise
  assert.deepEqual(begun, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'd1', 'a4', 'b3'])
})
