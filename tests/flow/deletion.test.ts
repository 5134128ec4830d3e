// Deleting beside delivering: what is on the wire is not torn off it, what waits is cancelled, and nothing is left behind.
import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Api, Inbox, Message } from '../support/api.ts'
import { makePlace, type Place, send, startNode, type TestNode, untilStates } from '../support/node.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'

interface Stage {
  place: Place
  node: TestNode
  sink: Sink
  api: Api
  inbox: Inbox
}

async function setStage(t: TestContext): Promise<Stage> {
  const [place, sink] = [await makePlace(t), await startSink(t)]
  const env = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url }
  const node = await startNode(place, { env })
  const { api } = await node.createCaller()
  return { place, node, sink, api, inbox: await api.createInbox() }
}

/** Lets the far side take its time over a message until it is told to go on. */
function holdMessages(sink: Sink): () => void {
  let release = () => {}
  const held = new Promise<null>((resolve) => (release = () => resolve(null)))
  sink.rule = ({ stage }) => (stage === 'message' ? held : null)
  return release
}

const remove = (api: Api, path: string) => api.call(path, { method: 'DELETE' })

async function codes(api: Api, submissionId: string): Promise<(string | null)[]> {
  const { failureCode, status } = await api.want<{ failureCode: string | null; status: string }>(
    `/v1/submissions/${submissionId}`,
  )
  return [status, failureCode]
}

async function count({ node }: Stage, rows: string): Promise<number> {
  const [row] = await node.foundation.db.query<{ count: number }>(`select count(*) as count from ${rows}`)
  return row!.count
}

for (const what of ['message', 'inbox'] as const)
  test(`check 77: the ${what} of a mail on the wire is 409, and afterwards it goes`, async (t) => {
    const { sink, api, inbox } = await setStage(t)
    const release = holdMessages(sink)
    const { submission, message } = await send(api, inbox, ['someone@far.test'], { key: 'on-the-wire' })
    await until('it to be on the wire', () => sink.open > 0)
    const path = what === 'message' ? `/v1/messages/${message.id}` : `/v1/inboxes/${inbox.id}`
    const refused = await until('the claim to be seen', async () => {
      const answer = await remove(api, path)
      return answer.status === 409 ? answer : null
    })
    assert.equal(refused.body.error, 'delivery_in_progress')
    await api.want(`/v1/messages/${message.id}`)
    release()
    await untilStates(api, submission.id, 'delivered')
    assert.equal((await remove(api, path)).status, 204)
    assert.equal((await remove(api, path)).status, 204)
    assert.equal((await api.call(`/v1/messages/${message.id}`)).status, 404)
    assert.deepEqual(await codes(api, submission.id), ['delivered', null])
    const body = { to: [{ email: 'someone@far.test' }], subject: 'Test', text: 'Hello.' }
    const replay = await api.call(`/v1/inboxes/${inbox.id}/messages`, {
      ...{ method: 'POST', idempotencyKey: 'on-the-wire', body },
    })
    assert.deepEqual([replay.status, replay.body.error], [410, 'idempotency_result_expired'])
  })

test('check 77: what waits of a deleted message or inbox is never sent', async (t) => {
  const stage = await setStage(t)
  const { node, sink, api, inbox } = stage
  sink.rule = ({ stage }) => (stage === 'rcpt' ? '450 4.2.1 later' : null)
  const [one, two] = [
    await send(api, inbox, ['a@far.test', 'b@far.test']),
    await send(api, inbox, ['c@far.test']),
  ]
  await untilStates(api, one.submission.id, 'deferred', 'deferred')
  await untilStates(api, two.submission.id, 'deferred')
  await until('message and claims to be let go of', async () => {
    return (await remove(api, `/v1/messages/${one.message.id}`)).status === 204
  })
  assert.deepEqual(await codes(api, one.submission.id), ['failed', 'cancelled'])
  assert.equal((await remove(api, `/v1/inboxes/${inbox.id}`)).status, 204)
  assert.deepEqual(await codes(api, two.submission.id), ['failed', 'inbox_deleted'])
  sink.rule = () => null
  node.foundation.clock.advance(86_400_000)
  const other = await api.createInbox()
  const { submission } = await send(api, other, ['d@far.test'])
  await untilStates(api, submission.id, 'delivered')
  assert.equal(sink.copies.length, 1)
})

test('check 77: of a deleted inbox nothing is left but its name', async (t) => {
  const stage = await setStage(t)
  const { place, node, sink, api, inbox } = stage
  const content = Buffer.alloc(400_000, 'large').toString('base64')
  const attachments = [{ filename: 'a.bin', contentType: 'application/octet-stream', content }]
  const body = { to: [{ email: 'x@far.test' }], subject: 'Test', text: 'Hello.', attachments }
  for (let i = 0; i < 3; i++)
    await api.want(`/v1/inboxes/${inbox.id}/messages`, {
      ...{ method: 'POST', status: 202, idempotencyKey: `attached-${i}`, body },
    })
  const { message } = await send(api, inbox, [inbox.address])
  await until('everything to arrive', async () => {
    const inbound = (await api.exported(inbox.id)).filter(({ direction }) => direction === 'inbound')
    return sink.copies.length === 3 && inbound.length === 1
  })
  const blobs = join(place.folder, 'blobs')
  const files = () =>
    (readdirSync(blobs, { recursive: true }) as string[]).filter((name) => name.includes('/'))
  assert.equal(files().length, 3)
  await until('the deletion', async () => (await remove(api, `/v1/inboxes/${inbox.id}`)).status === 204)
  for (const path of [
    `/v1/inboxes/${inbox.id}`,
    `/v1/messages/${message.id}`,
    `/v1/threads/${message.threadId}`,
  ])
    assert.equal((await api.call(path)).status, 404, path)
  assert.equal((await api.call(`/v1/inboxes/${inbox.id}/export`)).status, 410)
  await until('the purge', async () => (await count(stage, 'inbox where purged')) === 1)
  for (const table of ['message', 'thread', 'raw', 'spool']) assert.equal(await count(stage, table), 0, table)
  assert.ok(existsSync(blobs))
  // Bytes go after the commit that takes their rows.
  await until('the files to go', () => files().length === 0)
  // The address may come back to the same organization, and to no other.
  const localPart = inbox.address.split('@')[0]!
  const other = await node.createCaller()
  const taken = await other.api.call('/v1/inboxes', { method: 'POST', body: { localPart } })
  assert.deepEqual([taken.status, taken.body.error], [409, 'address_taken'])
  const again = await api.createInbox(localPart)
  assert.notEqual(again.id, inbox.id)
  assert.deepEqual(await api.want<{ messages: Message[] }>(`/v1/inboxes/${again.id}/messages`), {
    messages: [],
    nextCursor: null,
  })
})

test('deleting beside sending ends in one or the other, never in between', async (t) => {
  const stage = await setStage(t)
  const { sink, api } = stage
  for (let round = 0; round < 6; round++) {
    const inbox = await api.createInbox()
    const sending = Array.from({ length: 12 }, (_, i) =>
      send(api, inbox, [`r${i}@far.test`]).catch(() => null),
    )
    await until('the deletion', async () => (await remove(api, `/v1/inboxes/${inbox.id}`)).status === 204)
    for (const accepted of await Promise.all(sending)) {
      if (!accepted) continue
      const ended = await until('its end', async () => {
        const [status, code] = await codes(api, accepted.submission.id)
        return status === 'pending' ? null : { status, code }
      })
      const copies = sink.copiesOf(accepted.message.internetMessageId).length
      if (ended.status === 'delivered') assert.equal(copies, 1)
      else assert.deepEqual([ended.code, copies], ['inbox_deleted', 0])
    }
  }
  assert.equal(
    await count(stage, `delivery where claim_epoch is not null or status in ('pending', 'deferred')`),
    0,
  )
})
