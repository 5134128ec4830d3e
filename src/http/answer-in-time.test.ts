// An operation that does not begin its answer in time gets 503. An answer that takes long to read does not.
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import Fastify from 'fastify'
import { answerInTime } from './answer-in-time.ts'
import { answerOf } from './errors.ts'

const ms = 500

async function* pieces(beforeMs: number): AsyncGenerator<string> {
  await sleep(beforeMs)
  yield 'one '
  await sleep(2 * ms)
  yield 'two'
}

test('a stream may outlast an operation’s time, and one that starts too late gets 503', async (t) => {
  const server = Fastify()
  t.after(() => server.close())
  server.setErrorHandler((failure, request, reply) =>
    reply.code(answerOf(failure, request).status).send('late'),
  )
  for (const [url, beforeMs] of [
    ['/in-time', 0],
    ['/late', 2 * ms],
  ] as const)
    server.get(
      url,
      answerInTime(async (_request, reply) => reply.send(Readable.from(pieces(beforeMs))), ms),
    )
  const base = await server.listen({ host: '127.0.0.1', port: 0 })
  const read = async (path: string) => {
    const response = await fetch(base + path)
    return [response.status, await response.text()]
  }
  assert.deepEqual(await read('/in-time'), [200, 'one two'])
  assert.deepEqual(await read('/late'), [503, 'late'])
})
