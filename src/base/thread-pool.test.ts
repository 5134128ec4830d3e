// A pool's handling of its threads, whatever their script does. mail/parse-pool.test.ts has the rest.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { ThreadPool } from './thread-pool.ts'

const answersWithItself = `
import { parentPort, threadId } from 'node:worker_threads'
parentPort.on('message', () => parentPort.postMessage({ threadId }))
parentPort.postMessage('ready')`

test('an idle thread ends, and later work starts a new one', async (t) => {
  const pool = new ThreadPool<object, { threadId: number }>({
    script: new URL(`data:text/javascript,${encodeURIComponent(answersWithItself)}`),
    what: 'answer',
    threads: 1,
    heapMb: 16,
    idleMs: 500,
    pack: (message) => ({ message, transfer: [] }),
  })
  t.after(() => pool.close())
  const ask = () => pool.run({}, { timeoutMs: 5_000, isWanted: () => true })
  const [first, second] = [await ask(), await ask()]
  assert.deepEqual(second, first)
  await pause(1_000)
  assert.notDeepEqual(await ask(), first)
})
