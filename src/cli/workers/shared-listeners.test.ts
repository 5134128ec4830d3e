// Tests of the supervisor's listeners with workers that take no connections.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { until } from '../../../tests/support/until.ts'
import { silentLog } from '../../base/log.ts'
import { SharedListeners } from './shared-listeners.ts'

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
