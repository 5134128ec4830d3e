// What a refused send costs: its bytes, and nothing made of them.
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, type TestContext, test } from 'node:test'
import type { Inbox } from '../support/api.ts'
import { nextKey } from './sending.ts'
import { type Caller, setStage } from './stage.ts'

const stage = await setStage({ after })
const mebibyte = 1 << 20
const nowhere = 'inb_000000000000000000000000'
const head = '<blockquote>'.repeat(10)

/** HTML of so many bytes that its text is most costly to make. */
const costly = (bytes: number) => `${head}<pre>${'x\n\n\n'.repeat((bytes - head.length - 5) / 4)}`
const mail = (change: object) => ({ to: [{ email: 'a@far.test' }], subject: 'S', ...change })

const makeCaller = (limits = {}) =>
  stage.createCaller({ limits: { messageContentBytes: 40 * mebibyte, ...limits } })

/** The longest turn of the event loop meanwhile, in ms of this thread's own time, whatever else the machine does. */
async function longestTurn(work: () => Promise<void>): Promise<number> {
  let [longest, isOver] = [0, false]
  let before = process.threadCpuUsage()
  const look = () => {
    const { user, system } = process.threadCpuUsage(before)
    longest = Math.max(longest, (user + system) / 1000)
    before = process.threadCpuUsage()
    if (!isOver) setImmediate(look)
  }
  setImmediate(look)
  await work()
  isOver = true
  return longest
}

/** Sends the same bytes so many times at once, at next to no cost to this process, which is the service's as well. */
function sendAll({ secret }: Caller, inboxId: string, body: Buffer, count: number): Promise<number[]> {
  const call = () =>
    new Promise<number>((resolve, reject) => {
      const headers = {
        'content-type': 'application/json',
        'x-api-key': secret,
        'idempotency-key': nextKey(),
      }
      request(`${stage.base}/v1/inboxes/${inboxId}/messages`, { method: 'POST', headers })
        .on('error', reject)
        .on('response', (response) => response.resume().on('end', () => resolve(response.statusCode!)))
        .end(body)
    })
  return Promise.all(Array.from({ length: count }, call))
}

const html = (bytes: number) => Buffer.from(JSON.stringify(mail({ html: costly(bytes) })))

test('hostile 8: refused sends of 1 MB do not stall the main thread, nor do accepted ones', async (t) => {
  const caller = await makeCaller()
  const limited = await makeCaller({ messagesPerMinute: 0 })
  const large = html(mebibyte - 200)
  const rounds: [name: string, caller: Caller, inbox: string, status: number, count: number, body: Buffer][] =
    [
      ['of an inbox that does not exist', caller, nowhere, 404, 12, large],
      ['past a limit', limited, (await limited.api.createInbox()).id, 429, 12, large],
      ['accepted', caller, (await caller.api.createInbox()).id, 202, 2, html(mebibyte / 4)],
    ]
  for (const [name, by, inbox, status, count, body] of rounds)
    await t.test(name, async () => {
      const longest = await longestTurn(async () => {
        for (const answer of await sendAll(by, inbox, body, count)) assert.equal(answer, status)
      })
      assert.ok(longest < 100, `${longest} ms`)
    })
})

test('hostile 8: JSON of 1 MB and as many values as fit does not stall the main thread', async () => {
  const caller = await makeCaller()
  const body = Buffer.from(`{"to":[${'{},'.repeat(mebibyte / 3 - 10)}{}]}`)
  const longest = await longestTurn(async () => {
    for (const answer of await sendAll(caller, nowhere, body, 4)) assert.equal(answer, 400)
  })
  assert.ok(longest < 100, `${longest} ms`)
})

/** Attachments too large for a row: blobs are written of them. */
const file = { filename: 'a', contentType: 'text/plain', content: Buffer.alloc(300_000).toString('base64') }
const withFile = mail({ text: 'T', attachments: [file] })

interface Scene {
  caller: Caller
  inbox: Inbox
  /** Sends with a key; answers the status, its code and retry-after. */
  send(key: string, body?: object): Promise<[status: number, error: string | undefined, retryAfter: number]>
}

async function setScene(limits = {}): Promise<Scene> {
  const caller = await makeCaller(limits)
  const inbox = await caller.api.createInbox()
  const send = async (idempotencyKey: string, body: object = withFile) => {
    const call = { method: 'POST', idempotencyKey, body }
    const answer = await caller.api.call(`/v1/inboxes/${inbox.id}/messages`, call)
    const retryAfter = Number(answer.headers.get('retry-after'))
    return [answer.status, answer.body.error, retryAfter] as [number, string | undefined, number]
  }
  return { caller, inbox, send }
}

const watchBlobs = (t: TestContext) => t.mock.method(stage.blobs, 'put')

test('hostile 8: no blob is written for a send that is refused, whatever refuses it', async (t) => {
  const key = nextKey()
  const { caller, inbox, send } = await setScene({ messagesPerMinute: 1 })
  const blobs = watchBlobs(t)
  const written = () => blobs.mock.callCount()
  assert.equal((await send(key))[0], 202)
  assert.equal(written(), 1)

  const [status, error, retryAfter] = await send(nextKey())
  assert.deepEqual([status, error], [429, 'send_limit_exceeded'])
  assert.ok(retryAfter >= 50 && retryAfter <= 60, `${retryAfter} s`)
  const other = { ...withFile, subject: 'Other' }
  assert.deepEqual((await send(key, other)).slice(0, 2), [409, 'idempotency_key_reused'])
  assert.equal((await send(key))[0], 202)
  assert.equal((await send(nextKey(), { ...withFile, purpose: 'marketing' }))[0], 403)

  await caller.api.want(`/v1/suppressions`, { method: 'POST', body: { email: 'A@far.test' }, status: 201 })
  assert.deepEqual((await send(nextKey())).slice(0, 2), [422, 'all_recipients_suppressed'])
  const { messages } = await caller.api.want<{ messages: { id: string }[] }>(
    `/v1/inboxes/${inbox.id}/messages`,
  )
  await caller.api.want(`/v1/messages/${messages[0]!.id}`, { method: 'DELETE', status: 204 })
  assert.deepEqual((await send(key)).slice(0, 2), [410, 'idempotency_result_expired'])
  await stage.db.query(`update inbox set status = 'deleted', deleted_at = now() where id = $1`, [inbox.id])
  assert.deepEqual((await send(nextKey())).slice(0, 2), [404, 'not_found'])
  assert.equal(written(), 1)
})

test('hostile 8: a daily limit is foreseen with the time that it ends', async (t) => {
  const { send } = await setScene({ recipientsPerDay: 1 })
  const blobs = watchBlobs(t)
  assert.equal((await send(nextKey()))[0], 202)
  const [status, , retryAfter] = await send(nextKey())
  const toMidnight = (86_400_000 - (stage.clock.nowMs() % 86_400_000)) / 1000
  assert.equal(status, 429)
  assert.ok(Math.abs(retryAfter - toMidnight) < 10, `${retryAfter} s, and ${toMidnight} s to midnight`)
  assert.equal(blobs.mock.callCount(), 1)
})

test('the text of large HTML is made, stored and counted as that of small HTML is', async () => {
  const { caller, inbox, send } = await setScene({ messageContentBytes: 300_000 })
  const words = `<p>${'word '.repeat(20_000)}</p>`
  assert.equal((await send(nextKey(), mail({ html: words })))[0], 202)
  const { messages } = await caller.api.want<{ messages: { text: string }[] }>(
    `/v1/inboxes/${inbox.id}/messages`,
  )
  assert.equal(messages[0]!.text, 'word '.repeat(20_000).trim())
  const larger = `<p>${'word '.repeat(32_000)}</p>`
  assert.deepEqual((await send(nextKey(), mail({ html: larger }))).slice(0, 2), [413, 'message_too_large'])
  assert.equal((await send(nextKey(), mail({ html: larger, text: 'T' })))[0], 202)
})
