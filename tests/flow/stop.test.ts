// A stop: what is under way is answered, and who keeps a connection for more holds nothing up.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { makePlace, startNode } from '../support/node.ts'
import { startPosthorn } from '../support/service.ts'
import { until } from '../support/until.ts'

test('a request under way at a stop is answered, and its connection, kept for more, holds nothing up', async (t) => {
  const node = await startNode(await makePlace(t), { roles: ['api'] })
  const { secret } = await node.createCaller()
  const { host, port } = node.app.listening.http!
  const socket = connect(port, host)
  t.after(() => socket.destroy())
  let answer = ''
  socket.on('data', (bytes) => (answer += bytes))
  const ended = once(socket, 'end')
  const head = `POST /v1/inboxes HTTP/1.1\r\nhost: a.test\r\nx-api-key: ${secret}\r\ncontent-type: application/json\r\n`
  socket.write(`${head}content-length: 2\r\nexpect: 100-continue\r\n\r\n`)
  await until('the request to be under way', () => answer.startsWith('HTTP/1.1 100 '))
  let hasStopped = false
  const stopped = node.stop().then(() => (hasStopped = true))
  socket.write('{}')
  // It would otherwise be cut after 20 s.
  await until('the stop', () => hasStopped, { timeoutMs: 10_000 })
  await Promise.all([stopped, ended])
  assert.match(answer, /\r\nHTTP\/1\.1 201 /)
})

test('a signal that comes twice at once, as from a terminal and from npm, stops the service in order', async (t) => {
  const posthorn = await startPosthorn(t, { roles: 'api' })
  process.kill(posthorn.pid, 'SIGINT')
  assert.equal(await posthorn.stop(), 0)
})
