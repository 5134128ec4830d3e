// A service with two workers: both work, a killed one is replaced, and a stop or a crash loop ends both.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { hostname } from 'node:os'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { within } from '../../src/base/within.ts'
import type { Acceptance, Api, Inbox } from '../support/api.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { until } from '../support/until.ts'
import { callFresh, isAlive, readByWorker, workersOf } from '../support/worker-group.ts'

const two = { POSTHORN_WORKERS: '2' }
/** Node drops messages that a process gets before it listens. Ours listens so soon that none comes before, without this. */
const slowStart = `--import=data:text/javascript,${encodeURIComponent('await new Promise((done) => setTimeout(done, 200))')}`

interface NodeList {
  nodes: { host: string; isAlive: boolean; operator: string }[]
}

async function livingNames(posthorn: Posthorn): Promise<string[]> {
  const { nodes } = await posthorn.cli<NodeList>(['nodes'])
  return nodes.flatMap(({ host, isAlive }) => (isAlive ? host : [])).sort()
}

interface Check {
  name: string
  status: string
  detail: string
}

const bothNames = [1, 2].map((number) => `${hostname()}/${number}`)

async function untilBothLive(posthorn: Posthorn): Promise<void> {
  await until('both nodes to live', async () => (await livingNames(posthorn)).join() === bothNames.join())
}

/** Sends a mail to the inbox itself, again under the same key while no answer comes. */
async function sendAgain(api: Api, inbox: Inbox, number: number): Promise<string> {
  const body = { to: [{ email: inbox.address }], subject: `Mail ${number}`, text: 'Does it arrive?' }
  return await until(`an answer to send ${number}`, async () => {
    const call = { method: 'POST', body, idempotencyKey: `workers-${number}`, timeoutMs: 5_000 }
    const answer = await api.call<Acceptance>(`/v1/inboxes/${inbox.id}/messages`, call).catch(() => null)
    return answer?.status === 202 ? answer.body.message.subject : null
  })
}

test('two workers share the listeners, and one that ends is replaced until the service stops', async (t) => {
  const posthorn = await startPosthorn(t, { env: Object.assign({ NODE_OPTIONS: slowStart }, two) })
  // The commands of this test need not start slowly.
  delete posthorn.env['NODE_OPTIONS']

  await t.test('both are nodes with names and metrics, and the doctor counts them', async () => {
    assert.deepEqual([...workersOf(posthorn).keys()].sort(), [1, 2])
    assert.deepEqual(await livingNames(posthorn), bothNames)
    // A worker that is busy with its start gets fewer connections.
    let asked = 0
    const counts = await until('both workers to answer 10 requests', async () => {
      const calls = Array.from({ length: 20 }, () => callFresh(`${posthorn.http}/v1/me`))
      assert.ok((await Promise.all(calls)).every(({ status }) => status === 401))
      asked += calls.length
      const found = await readByWorker(posthorn, 'posthorn_http_request_seconds_count')
      return Math.min(found.get('1') ?? 0, found.get('2') ?? 0) >= 10 ? found : null
    })
    assert.equal(counts.get('1')! + counts.get('2')!, asked)
    assert.ok((await readByWorker(posthorn, 'process_resident_memory_bytes')).get('supervisor')! > 0)
    assert.equal((await callFresh(`${posthorn.operator}/readyz`)).body, '{"status":"ready"}\n')
    const { checks } = await posthorn.cli<{ checks: Check[] }>(['doctor'])
    const { status, detail } = checks.find(({ name }) => name === 'workers')!
    assert.deepEqual([status, detail], ['ok', '2 of 2 workers of this machine are running'])
  })

  await t.test('a worker that is out of descriptors loses no connection, and gets others later', async () => {
    const pid = workersOf(posthorn).get(1)!
    const limit = (most: number) => execFileSync('/usr/bin/prlimit', [`--pid=${pid}`, `--nofile=${most}:`])
    const count = async () =>
      (await readByWorker(posthorn, 'posthorn_http_request_seconds_count')).get('1') ?? 0
    // Descriptors that are open stay so. None can be added, even after one of them is closed.
    limit(3)
    await until('a connection to be given to it in vain', async () => {
      const calls = Array.from({ length: 4 }, () => callFresh(`${posthorn.http}/v1/me`))
      const answers = await within(20_000, Promise.all(calls), () => [])
      assert.deepEqual(
        answers.map(({ status }) => status),
        Array(4).fill(401),
      )
      return /a connection did not reach its worker/.test(posthorn.log())
    })
    limit(1_024)
    const before = await count()
    await until('it to answer again', async () => {
      await Promise.all(Array.from({ length: 4 }, () => callFresh(`${posthorn.http}/v1/me`)))
      return (await count()) > before
    })
  })

  await t.test('a killed worker is replaced within a second, and its mail is taken over', async () => {
    const { api } = await createCaller(posthorn)
    const inbox = await api.createInbox()
    const killed = workersOf(posthorn).get(1)!
    const numbers = Array.from({ length: 60 }, (_, number) => number)
    const sends = numbers.map((number) => sendAgain(api, inbox, number))
    await Promise.race(sends)
    process.kill(killed, 'SIGKILL')
    const killedMs = performance.now()
    await until('a process that replaces it', () => {
      const pid = workersOf(posthorn).get(1)
      return pid !== killed && pid
    })
    const replacedMs = performance.now() - killedMs
    assert.ok(replacedMs < 1_000, `${replacedMs} ms`)
    const sent = await Promise.all(sends)
    const arrived = await until('all mail to arrive', async () => {
      const messages = await api.exported(inbox.id)
      const inbound = messages.filter(({ direction }) => direction === 'inbound')
      return inbound.length >= numbers.length ? inbound : null
    })
    assert.deepEqual(arrived.map(({ subject }) => subject).sort(), sent.sort())
    await untilBothLive(posthorn)
  })

  await t.test('a worker that is stopped alone drains and is replaced', async () => {
    const stopped = workersOf(posthorn).get(2)!
    process.kill(stopped, 'SIGTERM')
    await until('another process', () => {
      const pid = workersOf(posthorn).get(2)
      return pid && pid !== stopped
    })
    await untilBothLive(posthorn)
    assert.match(posthorn.log(), /"worker":2,"msg":"worker ended with status 0: another process replaces it"/)
  })

  await t.test(
    'a worker that hangs is replaced, and another answers the connection on its way to it',
    async () => {
      const hung = workersOf(posthorn).get(1)!
      process.kill(hung, 'SIGSTOP')
      const hungMs = performance.now()
      // Each worker gets one connection at a time, so the one that hangs gets one of these.
      const answers = await Promise.all(Array.from({ length: 4 }, () => callFresh(`${posthorn.http}/v1/me`)))
      assert.ok(answers.every(({ status }) => status === 401))
      const answeredMs = performance.now() - hungMs
      assert.ok(answeredMs > 9_000 && answeredMs < 25_000, `${answeredMs} ms`)
      assert.match(posthorn.log(), /"worker":1,"msg":"worker hangs: it is killed"/)
      await until('a process that replaces it', () => {
        const pid = workersOf(posthorn).get(1)
        return pid && pid !== hung
      })
      await untilBothLive(posthorn)
    },
  )

  await t.test('SIGTERM ends both soon, also one that has just begun, and PostgreSQL stops too', async () => {
    const replaced = workersOf(posthorn).get(1)!
    process.kill(replaced, 'SIGKILL')
    const begun = await until('a process that replaces it', () => {
      const pid = workersOf(posthorn).get(1)
      return pid === replaced ? null : pid
    })
    // The message of the stop arrives before this process listens.
    process.kill(begun, 'SIGSTOP')
    const pids = [...workersOf(posthorn).values()]
    const stoppedMs = performance.now()
    const stopping = posthorn.stop()
    await until('the other worker to end', () => !isAlive(workersOf(posthorn).get(2) ?? 0))
    process.kill(begun, 'SIGCONT')
    assert.equal(await stopping, 0)
    assert.ok(performance.now() - stoppedMs < 15_000)
    assert.deepEqual(pids.filter(isAlive), [])
    assert.equal(posthorn.postgresPid(), null)
  })
})

/** Kills each process of this worker once it listens, until the service ends. */
async function killAgainAndAgain(posthorn: Posthorn, number: number): Promise<number> {
  const killed = new Set<number>()
  await until('the service to end', () => {
    if (!posthorn.isRunning()) return true
    const pid = workersOf(posthorn).get(number)
    if (pid && !killed.has(pid)) {
      killed.add(pid)
      process.kill(pid, 'SIGKILL')
    }
    return false
  })
  return killed.size
}

test('a worker that ends three times within 10 s of its start ends the service with the reason', async (t) => {
  const posthorn = await startPosthorn(t, { env: two })
  // On a slow machine, the first process has run for more than 10 s when it is killed.
  const killed = await killAgainAndAgain(posthorn, 2)
  assert.ok(killed === 3 || killed === 4, `${killed} were killed`)
  assert.match(
    posthorn.log(),
    /^posthorn: worker 2 ended 3 times within 10 s of its start, the last time by SIGKILL: /m,
  )
  assert.equal(await posthorn.stop(), 1)
  await until('PostgreSQL to end', () => posthorn.postgresPid() === null)
})

test('a worker that cannot start ends the service with its message, once', async (t) => {
  const other = createServer().listen(0, '127.0.0.1')
  t.after(() => other.close())
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const taken = { POSTHORN_HTTP: `127.0.0.1:${port}` }
  await assert.rejects(startPosthorn(t, { env: Object.assign(taken, two) }), (error: Error) => {
    assert.equal(error.message.match(/is in use by another program/g)?.length, 1, error.message)
    assert.match(error.message, /^posthorn: worker 1 ended with status 1 before it was ready: /m)
    return true
  })
})

/** Resolves with the milliseconds until both workers have ended. */
async function endAfter(posthorn: Posthorn, end: (pids: number[]) => Promise<void>): Promise<number> {
  const pids = [...workersOf(posthorn).values()]
  assert.equal(pids.length, 2)
  const begunMs = performance.now()
  await end(pids)
  await until('both workers to end', () => !pids.some(isAlive))
  await until('the supervisor to end', () => !posthorn.isRunning())
  return performance.now() - begunMs
}

test('no worker outlives its supervisor, whether that is killed or gets a second signal', async (t) => {
  const posthorn = await startPosthorn(t, { env: two })
  const killedMs = await endAfter(posthorn, () => posthorn.kill9())
  assert.ok(killedMs < 10_000, `${killedMs} ms`)
  await posthorn.start()
  assert.equal((await callFresh(`${posthorn.operator}/readyz`)).status, 200)
  const signalledMs = await endAfter(posthorn, async (pids) => {
    // A worker that hangs cannot drain.
    for (const pid of pids) process.kill(pid, 'SIGSTOP')
    process.kill(posthorn.pid, 'SIGTERM')
    await sleep(600) // a signal that comes sooner passes for an echo
    process.kill(posthorn.pid, 'SIGTERM')
  })
  assert.ok(signalledMs < 10_000, `${signalledMs} ms`)
})
