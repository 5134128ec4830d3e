// Idempotency keys from outside: one key, one submission, even if concurrent, repeated, changed, deleted or killed.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import type { Acceptance, Answer, Api, Inbox, Refusal, Submission } from '../support/api.ts'
import {
  countStatuses,
  deploy,
  idsOf,
  makeSender,
  type Operation,
  operations,
  requestOf,
  type SendAnswer,
  type SendRequest,
  sendBy,
} from '../support/deployment.ts'
import { Door } from '../support/door.ts'
import { makePlace } from '../support/node.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'

interface Stage {
  posthorn: Posthorn
  api: Api
  inbox: Inbox
}

async function setStage(t: TestContext): Promise<Stage> {
  const sink = await startSink(t)
  const env = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url }
  const posthorn = await startPosthorn(t, { env })
  const { api } = await createCaller(posthorn)
  return { posthorn, api, inbox: await api.createInbox() }
}

const body = { to: [{ email: 'someone@far.test' }], subject: 'Once', text: 'Only once.' }

function send(
  { api, inbox }: Stage,
  idempotencyKey: string,
  changed: unknown = body,
): Promise<Answer<Acceptance & Refusal>> {
  return api.call(`/v1/inboxes/${inbox.id}/messages`, { method: 'POST', idempotencyKey, body: changed })
}

const ids = ({ body: { message, submission } }: Answer<Acceptance>): string =>
  `${message.id} ${submission.id}`

test('check 72: a key makes a request idempotent', async (t) => {
  const stage = await setStage(t)
  const { api, posthorn } = stage

  await t.test('100 parallel requests with one key are one submission', async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, () => send(stage, 'parallel-1')))
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [202])
    assert.equal(new Set(answers.map(ids)).size, 1)
    assert.equal(answers.filter((answer) => !answer.body.replayed).length, 1)
    const { submissions } = await api.want<{ submissions: Submission[] }>('/v1/submissions')
    assert.equal(submissions.length, 1)
  })

  await t.test('the order of the body’s members makes no difference', async () => {
    const { to, subject, text } = body
    const answer = await send(stage, 'parallel-1', { text, subject, to })
    assert.equal(answer.status, 202)
    assert.equal(answer.body.replayed, true)
  })

  await t.test('the same key with another body is 409', async () => {
    const answer = await send(stage, 'parallel-1', { ...body, text: 'Another.' })
    assert.equal(answer.status, 409)
    assert.equal(answer.body.error, 'idempotency_key_reused')
  })

  await t.test('a key belongs to its organization', async () => {
    const other = await createCaller(posthorn)
    const inbox = await other.api.createInbox()
    const answer = await send({ posthorn, api: other.api, inbox }, 'parallel-1')
    assert.equal(answer.status, 202)
    assert.equal(answer.body.replayed, false)
  })

  await t.test('a key belongs to its operation', async () => {
    const { message } = (await send(stage, 'parallel-1')).body
    const reply = await api.call<Acceptance>(`/v1/threads/${message.threadId}/replies`, {
      method: 'POST',
      idempotencyKey: 'parallel-1',
      body: { targetMessageId: message.id, text: 'And one more thing.' },
    })
    assert.equal(reply.status, 202)
    assert.equal(reply.body.replayed, false)
    assert.notEqual(reply.body.message.id, message.id)
  })

  await t.test('a killed service replays the same ids', async () => {
    const first = await send(stage, 'killed-1')
    await posthorn.kill9()
    await posthorn.start()
    const again = await send(stage, 'killed-1')
    assert.equal(again.body.replayed, true)
    assert.equal(ids(again), ids(first))
  })

  await t.test('after its message was deleted a key is 410 forever, whatever the body', async () => {
    const { body: accepted } = await send(stage, 'deleted-1')
    await until('the delivery to be over', async () => {
      const { status } = await api.want<Submission>(`/v1/submissions/${accepted.submission.id}`)
      return status === 'delivered'
    })
    await api.want(`/v1/messages/${accepted.message.id}`, { method: 'DELETE', status: 204 })
    for (const changed of [body, { ...body, text: 'Another.' }]) {
      const answer = await send(stage, 'deleted-1', changed)
      assert.equal(answer.status, 410)
      assert.equal(answer.body.error, 'idempotency_result_expired')
    }
  })

  await t.test('a key that breaks its pattern is 400', async () => {
    for (const key of ['', 'short-7', 'x'.repeat(201), 'with space', 'sla/shes1']) {
      const answer = await send(stage, key)
      assert.equal(answer.status, 400, `key ${JSON.stringify(key)}`)
    }
    for (const key of ['eight-88', 'x'.repeat(200), 'A.b_c:d-9'])
      assert.equal((await send(stage, key)).status, 202, `key ${JSON.stringify(key)}`)
  })

  await t.test('a refused request does not use up its key', async () => {
    assert.equal((await send(stage, 'refused-1', { ...body, subject: ' ' })).status, 400)
    assert.equal((await send(stage, 'refused-1')).status, 202)
  })
})

const outcome = ({ status, body }: Answer<{ error?: string; replayed?: boolean }>) => [
  status,
  body.error ?? body.replayed,
]

for (const count of [1, 2])
  test(`check 72, 95: 100 parallel requests with one key are one submission, with ${count === 1 ? 'one node' : 'two nodes'}`, async (t) => {
    const deployment = await deploy(t, { nodes: count })
    const sender = await makeSender(deployment, { limits: { messagesPerDay: 1000 } })
    const apis = deployment.nodes.map((node) => node.meet(sender))
    const { db } = deployment.nodes[0]!.foundation
    const flood = (operation: Operation, request: (index: number) => SendRequest) =>
      Promise.all(
        Array.from({ length: 100 }, (_, index) =>
          sendBy(apis[index % count]!, sender, operation, request(index)),
        ),
      )
    const counts = async () => {
      const [row] = await db.query<{ submissions: number; used: number }>(
        `select count(*)::integer as submissions, (select day_messages from usage where organization_id = $1) as used
        from submission where organization_id = $1`,
        [sender.organizationId],
      )
      return row!
    }
    const setLimit = (messagesPerDay: number) =>
      db.query('update organization set limits = limits || $2::jsonb where id = $1', [
        sender.organizationId,
        JSON.stringify({ messagesPerDay }),
      ])
    for (const operation of operations) {
      await t.test(`${operation}: equal bodies are one submission`, async () => {
        const before = await counts()
        const answers = await flood(operation, () => ({ key: 'the-same-key' }))
        assert.deepEqual(countStatuses(answers), { 202: 100 })
        assert.equal(answers.filter(({ body }) => !body.replayed).length, 1)
        assert.equal(new Set(answers.map(idsOf)).size, 1)
        const { submissions, used } = await counts()
        assert.deepEqual([submissions - before.submissions, used - before.used], [1, 1])
      })
      await t.test(`${operation}: a second body is refused`, async () => {
        const before = await counts()
        const change = (index: number) => ({ text: index % 4 < 2 ? 'One.' : 'Other.' })
        const answers = await flood(operation, (index) => ({ key: 'two-bodies', change: change(index) }))
        assert.deepEqual(countStatuses(answers), { 202: 50, 409: 50 })
        const first = answers.findIndex(({ body }) => body.replayed === false)
        for (const [index, answer] of answers.entries()) {
          const isFirsts = change(index).text === change(first).text
          assert.deepEqual(outcome(answer)[1], isFirsts ? index !== first : 'idempotency_key_reused')
        }
        assert.equal((await counts()).submissions - before.submissions, 1)
      })
      await t.test(`${operation}: a refused request does not use up its key`, async () => {
        const key = 'refused-first'
        const refused: [change: object, error: string][] = [
          [{ text: undefined }, 'invalid_request'],
          [{ purpose: 'marketing' }, 'marketing_not_available'],
          [{ text: 'x'.repeat((10 << 20) + 1) }, 'message_too_large'],
        ]
        for (const [change, error] of refused)
          assert.equal((await sendBy(apis[0]!, sender, operation, { key, change })).body.error, error)
        // A reply from this sender goes to this address too.
        const answersOf = { to: [{ email: 'answers@far.test' }] }
        const change = operation === 'reply' ? {} : answersOf
        const suppression = { method: 'POST', body: { email: 'answers@far.test' } }
        await sender.api.want('/v1/suppressions', { ...suppression, status: 201 })
        const suppressed = await sendBy(apis[0]!, sender, operation, { key, change })
        assert.deepEqual(outcome(suppressed), [422, 'all_recipients_suppressed'])
        await sender.api.want('/v1/suppressions', { ...suppression, method: 'DELETE', status: 204 })
        await setLimit(0)
        const limited = await sendBy(apis[0]!, sender, operation, { key, change })
        assert.deepEqual(outcome(limited), [429, 'send_limit_exceeded'])
        await setLimit(1000)
        assert.deepEqual(outcome(await sendBy(apis[0]!, sender, operation, { key, change })), [202, false])
        // A replay uses no limit.
        await setLimit(0)
        await sender.api.want('/v1/suppressions', { ...suppression, status: 201 })
        assert.deepEqual(outcome(await sendBy(apis.at(-1)!, sender, operation, { key, change })), [202, true])
        await setLimit(1000)
        await sender.api.want('/v1/suppressions', { ...suppression, method: 'DELETE', status: 204 })
      })
    }
    await t.test('a key belongs to its operation and its organization', async () => {
      const other = await makeSender(deployment)
      const answers: SendAnswer[] = []
      for (const one of [sender, other])
        for (const operation of operations)
          answers.push(await sendBy(one.api, one, operation, { key: 'everywhere' }))
      assert.deepEqual(answers.map(outcome), Array(6).fill([202, false]))
      assert.equal(new Set(answers.map(idsOf)).size, 6)
      const opened = { method: 'POST', idempotencyKey: 'everywhere', body: {}, status: 201 }
      await sender.api.want('/v1/inboxes', opened)
    })
  })

test('check 72: a repeated request is 409 while the first one still runs after 5 s, and the first counts', async (t) => {
  const deployment = await deploy(t, { nodes: 1 })
  const sender = await makeSender(deployment)
  const holder = new pg.Client(deployment.place.connection)
  await holder.connect()
  deployment.place.after(() => holder.end())
  await holder.query('begin')
  await holder.query('select from usage where organization_id = $1 for update', [sender.organizationId])
  const send = (operation: Operation) => sendBy(sender.api, sender, operation, { key: `slow-${operation}` })
  const pairs = operations.map((operation) => [send(operation), send(operation)])
  // The first of the two runs as long as the lock is held.
  for (const pair of pairs) {
    const second = await Promise.race(pair)
    assert.deepEqual(outcome(second), [409, 'idempotency_in_progress'])
    assert.match(second.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
  }
  await holder.query('commit')
  const answers = (await Promise.all(pairs.map((pair) => Promise.all(pair)))).flat()
  assert.deepEqual(countStatuses(answers), { 202: 3, 409: 3 })
  const accepted = answers.filter(({ status }) => status === 202)
  assert.deepEqual(accepted.map(outcome), Array(3).fill([202, false]))
  const thirds = await Promise.all(operations.map(send))
  assert.deepEqual(thirds.map(outcome), Array(3).fill([202, true]))
  assert.deepEqual(thirds.map(idsOf), accepted.map(idsOf))
})

test('check 72: a deleted result is 410 forever, whatever is requested', async (t) => {
  const deployment = await deploy(t, { nodes: 1, roles: ['api', 'jobs'] })
  const sender = await makeSender(deployment)
  const { db, clock } = deployment.nodes[0]!.foundation
  const kinds = ['message', 'inbox'] as const
  const senders = { message: sender, inbox: await makeSender(deployment) }
  for (const kind of kinds)
    for (const operation of ['message', 'reply'] as const) {
      const one = senders[kind]
      const { status, body } = await sendBy(one.api, one, operation, { key: 'gone-one' })
      assert.equal(status, 202)
      if (kind === 'message')
        await one.api.want(`/v1/messages/${body.message!.id}`, { method: 'DELETE', status: 204 })
    }
  await senders.inbox.api.want(`/v1/inboxes/${senders.inbox.inbox.id}`, { method: 'DELETE', status: 204 })
  const assertGone = async (when: string) => {
    for (const kind of kinds)
      for (const operation of ['message', 'reply'] as const)
        for (const change of [
          {},
          { text: 'Another.' },
          { purpose: 'marketing' },
          { text: 'x'.repeat((10 << 20) + 1) },
        ])
          for (const key of ['gone-one', 'a-new-one'] as const) {
            const one = senders[kind]
            // If the inbox exists, a new key is a new send.
            if (kind === 'message' && key === 'a-new-one') continue
            const wanted = key === 'gone-one' ? [410, 'idempotency_result_expired'] : [404, 'not_found']
            const answer = await sendBy(one.api, one, operation, { key, change })
            assert.deepEqual(outcome(answer), wanted, `${when}: ${kind}, ${operation}`)
          }
  }
  await assertGone('at once')
  await until('the inbox to be purged', async () => {
    const [row] = await db.query<{ purged: boolean }>('select purged from inbox where id = $1', [
      senders.inbox.inbox.id,
    ])
    return row?.purged
  })
  await assertGone('after the purge')
  deployment.advance(31 * 86_400_000)
  // Every retention job has run since.
  const begun = clock.monotonicMs()
  await until('the jobs to run', () => clock.monotonicMs() > begun + 5_000)
  await assertGone('after 31 days')
})

test('check 72, 85a: a send killed between commit and answer exists once, and its key replays it', async (t) => {
  const place = await makePlace(t)
  const door = new Door(place)
  await door.open()
  place.after(() => door.shut())
  const posthorn = await startPosthorn(place, { env: { POSTHORN_DATABASE_URL: door.url } })
  const { api } = await createCaller(posthorn)
  const stage = { posthorn, api, inbox: await api.createInbox() }
  const judge = new pg.Client(place.connection)
  await judge.connect()
  place.after(() => judge.end())
  const committed = async (key: string) => {
    const { rows } = await judge.query('select id, message_id from submission where idempotency_key = $1', [
      key,
    ])
    return rows as { id: string; message_id: string }[]
  }

  door.holdFrom('killed-2')
  const lost = send(stage, 'killed-2').then(
    () => 'answered',
    () => 'lost',
  )
  const rows = await until('the commit', async () => {
    const found = await committed('killed-2')
    return found.length > 0 ? found : null
  })
  await posthorn.kill9()
  assert.equal(await lost, 'lost')
  door.release()
  await posthorn.start()
  const again = await send(stage, 'killed-2')
  assert.deepEqual([again.status, again.body.replayed], [202, true])
  assert.deepEqual([again.body.submission.id, again.body.message.id], [rows[0]!.id, rows[0]!.message_id])
  assert.equal((await committed('killed-2')).length, 1)
})

test('check 72: a client that hangs up before its answer finds its send by the key', async (t) => {
  const deployment = await deploy(t, { nodes: 1 })
  const sender = await makeSender(deployment)
  const { foundation, app } = deployment.nodes[0]!
  const { host, port } = app.listening.http!
  for (const [round, operation] of [...operations, ...operations, ...operations].entries()) {
    const key = `hung-up-${round}`
    const { path, body } = requestOf(sender, operation)
    const text = JSON.stringify(body)
    const socket = connect(port, host)
    await once(socket, 'connect')
    const head = [
      ...[`POST ${path} HTTP/1.1`, 'host: x', `x-api-key: ${sender.secret}`, `idempotency-key: ${key}`],
      ...['content-type: application/json', `content-length: ${text.length}`, '', text],
    ]
    socket.write(head.join('\r\n'))
    if (round % 2) socket.end()
    else socket.destroySoon()
    await once(socket, 'close')
    const again = await sendBy(sender.api, sender, operation, { key })
    assert.equal(again.status, 202)
    const sql = 'select id from submission where idempotency_key = $1'
    assert.deepEqual(await foundation.db.query(sql, [key]), [{ id: again.body.submission.id }])
  }
})
