// Tests of the supervisor's listeners: connections that did not reach a worker, and those that wait for one.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { until } from '../../../tests/support/until.ts'
import { silentLog } from '../../base/log.ts'
import { SharedListeners } from './shared-listeners.ts'

/** A listener with two workers, and the connections that each was sent. */
async function listen(t: TestContext) {
  const listeners = new SharedListeners(silentLog)
  const arrival: { next: PromiseWithResolvers<void> } = { next: Promise.withResolvers() }
  const join = async () => {
    const got: Socket[] = []
    const { calls, release, noteSent } = listeners.forWorker((_, socket) => {
      got.push(socket)
      arrival.next.resolve()
    })
    const listened = await calls.listen({ address: '127.0.0.1', port: 0, backlog: 16, index: 0 })
    assert.ok(typeof listened === 'object')
    const { key, bound } = listened
    t.after(release)
    return { got, noteSent, took: () => calls.took(key), port: bound.port }
  }
  const [first, second] = [await join(), await join()]
  t.after(() => listeners.stop())
  const dial = async () => {
    arrival.next = Promise.withResolvers()
    const socket = connect(first.port, '127.0.0.1').on('error', () => {})
    t.after(() => socket.destroy())
    await arrival.next.promise
  }
  return { first, second, dial }
}

test('a connection that is still on its way after a beat goes to another worker', async (t) => {
  const { first, second, dial } = await listen(t)
  await dial()
  const refuseLost = first.noteSent()
  assert.deepEqual([first.got.length, second.got.length], [1, 0])
  refuseLost()
  assert.equal(second.got[0], first.got[0])
  second.took()
  // The first worker still gets connections.
  await dial()
  assert.equal(first.got.length, 2)
  first.took()
})

test('a connection that was taken, or sent after the beat, stays with its worker', async (t) => {
  const { first, second, dial } = await listen(t)
  await dial()
  const refuseLost = first.noteSent()
  first.took()
  await dial()
  second.took()
  await dial()
  refuseLost()
  assert.deepEqual([first.got.length, second.got.length], [2, 1])
  first.took()
})

test('connections that wait for a worker are closed beyond a bound, and the others go to workers that take them', async (t) => {
  const listeners = new SharedListeners(silentLog, { maxWaiting: 3 })
  const sent: string[] = []
  const worker = listeners.forWorker((key) => sent.push(key))
  const listened = await worker.calls.listen({ address: '127.0.0.1', port: 0, backlog: 16, index: 0 })
  assert.ok(typeof listened === 'object')
  const { key, bound } = listened
  let closed = 0
  const clients = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const client = connect(bound.port, bound.address)
      client.on('error', () => {}).on('close', () => closed++)
      await once(client, 'connect')
      return client
    }),
  )
  t.after(() => clients.forEach((client) => void client.destroy()))
  // One is on its way, and three wait.
  await until('the bound', () => closed === 2)
  assert.deepEqual(sent, [key])
  for (let taken = 1; taken <= 4; taken++) {
    assert.equal(sent.length, taken)
    worker.calls.took(key)
  }
  assert.equal(sent.length, 4)
  listeners.stop()
  worker.release()
  await until('all ends', () => closed === 6)
})
