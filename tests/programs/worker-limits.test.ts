// Limits with two workers: each is as strict as with one, because the workers share the counts of strangers and keys.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { until } from '../support/until.ts'
import { callFresh, readByWorker, workersOf } from '../support/worker-group.ts'

const two = { POSTHORN_WORKERS: '2' }

interface LivingNode {
  id: number
  isAlive: boolean
  smtp: string | null
}

/** Asserts that both workers took a part of this. */
async function assertBothTook(posthorn: Posthorn, metric: string): Promise<void> {
  const counts = await readByWorker(posthorn, metric)
  assert.ok(counts.get('1')! > 0 && counts.get('2')! > 0, `${metric}: ${[...counts]}`)
}

/** Runs `count` within one minute of the service's windows. */
async function withinOneMinute(count: () => Promise<number>): Promise<number> {
  for (;;) {
    const minute = () => Math.floor(Date.now() / 60_000)
    const begun = minute()
    const found = await count()
    if (minute() === begun) return found
  }
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}

/**
 * Connects by SMTP, through a balancer in the name of `peer` if it is given. Returns 421 if the peer is refused, else the
 * code of the greeting. A peer may be refused after the greeting, when the balancer's header arrives.
 */
async function knock(
  t: TestContext,
  { smtp }: Posthorn,
  peer?: string,
): Promise<{ socket: Socket; code: string }> {
  const socket = connect(smtp.port, smtp.host)
  t.after(() => socket.destroy())
  socket.on('error', () => {})
  if (peer) socket.write(`PROXY TCP4 ${peer} 192.0.2.25 4000 25\r\n`)
  let replies = String((await once(socket, 'data'))[0])
  if (peer && replies.startsWith('220')) {
    socket.on('data', (bytes) => {
      replies += bytes
    })
    socket.write('NOOP\r\n')
    await until('the reply to NOOP, or the refusal', () => /^(?:250|421) /m.test(replies))
  }
  return { socket, code: /^421/m.exec(replies)?.[0] ?? replies.slice(0, 3) }
}

async function knockOften(t: TestContext, posthorn: Posthorn, count: number, peer?: string) {
  const all = await Promise.all(Array.from({ length: count }, () => knock(t, posthorn, peer)))
  return {
    admitted: all.filter(({ code }) => code === '220'),
    refused: all.filter(({ code }) => code === '421'),
  }
}

/** Kills a worker. Resolves when the one that replaces it takes mail. */
async function replace(posthorn: Posthorn, number: number): Promise<void> {
  const living = async () => {
    const { nodes } = await posthorn.cli<{ nodes: LivingNode[] }>(['nodes'])
    return nodes.filter(({ isAlive, smtp }) => isAlive && smtp !== null).map(({ id }) => id)
  }
  const before = await living()
  process.kill(workersOf(posthorn).get(number)!, 'SIGKILL')
  await until('its successor', async () => {
    const now = await living()
    return now.length === 2 && now.some((id) => !before.includes(id))
  })
}

test('limits on callers are as strict with two workers', async (t) => {
  const posthorn = await startPosthorn(t, { env: two })

  await t.test('the request rate of a key is exact over two workers', async () => {
    const { organizationId } = await createCaller(posthorn)
    const accepted = await withinOneMinute(async () => {
      const words = ['key', 'create', '--org', organizationId, '--name', 'slow', '--scopes', '*']
      const { secret } = await posthorn.cli<{ secret: string }>([...words, '--requests-per-minute', '40'])
      const headers = { 'x-api-key': secret }
      const answers = await Promise.all(
        Array.from({ length: 120 }, () => callFresh(`${posthorn.http}/v1/me`, { headers })),
      )
      assert.ok(answers.every(({ status }) => status === 200 || status === 429))
      return answers.filter(({ status }) => status === 200).length
    })
    assert.equal(accepted, 40)
    await assertBothTook(posthorn, 'posthorn_http_request_seconds_count')
  })

  await t.test('attempts to sign in wait after the fifth, whichever worker gets them', async () => {
    const headers = { origin: posthorn.http }
    const body = { email: 'nobody@far.test', password: 'a wrong password' }
    const answers = await Promise.all(
      Array.from({ length: 16 }, () =>
        callFresh(`${posthorn.http}/app/v1/session`, { method: 'POST', headers, body }),
      ),
    )
    const statuses = answers.map(({ status }) => status)
    assert.equal(statuses.filter((status) => status === 429).length, 11)
    // On a slow machine, an attempt that was counted may end at a time limit.
    assert.ok(
      statuses.every((status) => [401, 429, 503].includes(status)),
      `${statuses}`,
    )
  })

  await t.test('the look-ups of an organization are counted over two workers', async () => {
    const { secret } = await createCaller(posthorn)
    const headers = { 'x-api-key': secret }
    const calls = Array.from({ length: 9 }, (_, call) => {
      const emails = Array.from({ length: 100 }, (_, index) => `a@d${call}-${index}.test`)
      return callFresh(`${posthorn.http}/v1/validate/bulk`, { method: 'POST', headers, body: { emails } })
    })
    const statuses = (await Promise.all(calls)).map(({ status }) => status).sort()
    assert.deepEqual(statuses, [200, 200, 200, 200, 200, 200, 429, 429, 429])
  })

  await t.test('a balancer’s client gets 50 SMTP connections from two workers', async () => {
    const { admitted, refused } = await knockOften(t, posthorn, 80, '198.51.100.7')
    assert.deepEqual([admitted.length, refused.length], [50, 30])
    assert.equal((await knock(t, posthorn, '203.0.113.7')).code, '220')
  })

  await t.test('an address gets 2,000 HTTP connections from two workers', async () => {
    const { hostname, port } = new URL(posthorn.http)
    const sockets: Socket[] = []
    t.after(() => sockets.forEach((socket) => void socket.destroy()))
    let closed = 0
    while (sockets.length < 2_040) {
      const group = Array.from({ length: 204 }, () => connect(Number(port), hostname))
      for (const socket of group) socket.on('error', () => {}).on('close', () => closed++)
      sockets.push(...group)
      await Promise.all(group.map((socket) => once(socket, 'connect')))
      // Its answer shows that these were accepted. If the listener's queue overflows, only the client knows a connection.
      await callFresh(`${posthorn.http}/v1/me`).catch(() => null)
    }
    await until('the refusals', () => closed >= 40)
    sockets.filter((socket) => !socket.closed)[0]!.destroy()
    await until(
      'room',
      async () => (await callFresh(`${posthorn.http}/v1/me`).catch(() => null))?.status === 401,
    )
    assert.equal(closed, 41)
  })
})

test('limits on addresses at the mail server are as strict with two workers', async (t) => {
  const posthorn = await startPosthorn(t, { env: Object.assign({ POSTHORN_SMTP_TRUSTED: '' }, two) })

  await t.test(
    'an address gets 50 SMTP connections from two workers, and those of killed workers are free again',
    async () => {
      const { admitted, refused } = await knockOften(t, posthorn, 80)
      assert.deepEqual([admitted.length, refused.length], [50, 30])
      admitted.pop()!.socket.end('QUIT\r\n')
      await until('the room of a connection that ended', async () => {
        const { socket, code } = await knock(t, posthorn)
        if (code === '220') admitted.push({ socket, code })
        return code === '220'
      })
      for (const number of [1, 2]) await replace(posthorn, number)
      assert.equal(admitted.filter(({ socket }) => !socket.closed).length, 0)
      const again = await knockOften(t, posthorn, 80)
      assert.deepEqual([again.admitted.length, again.refused.length], [50, 30])
      for (const { socket } of again.admitted) socket.destroy()
      await until('the room of all', async () => {
        const { admitted: ten } = await knockOften(t, posthorn, 10)
        for (const { socket } of ten) socket.destroy()
        return ten.length === 10
      })
    },
  )

  await t.test('an address that guesses recipients is blocked by both workers', async () => {
    const session = async (): Promise<string> => {
      const { socket, code } = await knock(t, posthorn)
      if (code !== '220') return code
      let heard = ''
      socket.on('data', (bytes) => (heard += bytes))
      const guesses = Array.from({ length: 15 }, (_, index) => `RCPT TO:<guess${index}@inbox.localhost>\r\n`)
      socket.write('EHLO a.test\r\n')
      await until('the greeting', () => /^250 /m.test(heard))
      socket.write(`MAIL FROM:<a@far.test>\r\n${guesses.join('')}QUIT\r\n`)
      await once(socket, 'close')
      return heard
    }
    const heard = await Promise.all(Array.from({ length: 8 }, session))
    const unknown = sum(heard.map((text) => text.match(/^550 5\.1\.1 /gm)?.length ?? 0))
    assert.ok(unknown >= 49 && unknown <= 60, `${unknown} guesses were answered`)
    const later = await session()
    assert.match(later, /421 4\.7\.0 Too many unknown recipients/)
  })
})
