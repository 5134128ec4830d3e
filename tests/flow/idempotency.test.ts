// Idempotency keys from outside: one key, one submission, whatever is in flight, repeated, changed, deleted or killed.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Acceptance, Answer, Api, Inbox, Refusal, Submission } from '../support/api.ts'
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

test('check 72: idempotency keys', async (t) => {
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

  await t.test('the order of the members in the body is no difference', async () => {
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

  await t.test('after its message was deleted a key is 410 for ever, whatever the body', async () => {
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
