// Webhooks after a kill -9: committed events are still delivered, with the same id.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Api } from '../support/api.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { until } from '../support/until.ts'
import { startReceiver, verifyCall, type WebhookReceiver } from '../support/webhook-receiver.ts'

interface Stage {
  posthorn: Posthorn
  api: Api
  receiver: WebhookReceiver
  hook: { id: string; secret: string }
}

async function setStage(t: TestContext): Promise<Stage> {
  const posthorn = await startPosthorn(t, { env: { POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true' } })
  const { api } = await createCaller(posthorn)
  const receiver = await startReceiver(t)
  const body = { url: receiver.url() }
  const hook = await api.want<Stage['hook']>('/v1/webhooks', { method: 'POST', status: 201, body })
  return { posthorn, api, receiver, hook }
}

const announce = ({ api, hook }: Stage) =>
  api.want(`/v1/webhooks/${hook.id}/test`, { method: 'POST', status: 202 })
const idsOf = ({ calls }: WebhookReceiver) => calls.map(({ headers }) => headers['webhook-id']!)

test('check 84: events committed before a kill -9 are sent after it', async (t) => {
  const stage = await setStage(t)
  const { posthorn, receiver, hook } = stage
  for (let n = 0; n < 20; n++) await announce(stage)
  await posthorn.kill9()
  await posthorn.start()
  await until('all of it', () => new Set(idsOf(receiver)).size === 20)
  for (const call of receiver.calls) verifyCall(hook.secret, call)
})

test('check 84: a call interrupted by a kill -9 comes again with the same id', async (t) => {
  const stage = await setStage(t)
  const { posthorn, receiver } = stage
  let answers = 0
  receiver.answer('/', (response) => void (answers++ > 0 && response.writeHead(204).end()))
  await announce(stage)
  await until('the call', () => receiver.calls.length === 1)
  await posthorn.kill9()
  await posthorn.start()
  await until('the call again', () => receiver.calls.length === 2)
  const [first, second] = idsOf(receiver)
  assert.equal(second, first)
})
