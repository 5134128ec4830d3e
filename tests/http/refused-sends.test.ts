// A refused send costs only the reading of its bytes.
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, type TestContext, test } from 'node:test'
import { requestHash } from '../../src/flow/idempotency.ts'
import { decodeBase64 } from '../../src/http/body/base64.ts'
import { LargeBodies } from '../../src/http/body/large-bodies.ts'
import { parseJson } from '../../src/http/body/parse-json.ts'
import { htmlToText } from '../../src/mail/read/html-text.ts'
import type { Inbox } from '../support/api.ts'
import { cpuMsOf, cpuMsSince } from '../support/cpu-time.ts'
import { nextKey } from './sending.ts'
import { ask, type Caller, setStage } from './stage.ts'

const stage = await setStage({ after })
const mebibyte = 1 << 20
const nowhere = 'inb_000000000000000000000000'
const head = '<blockquote>'.repeat(10)

/** Returns HTML of this many bytes whose conversion to text is as costly as possible. */
const costly = (bytes: number) => `${head}<pre>${'x\n\n\n'.repeat((bytes - head.length - 5) / 4)}`
const mail = (change: object) => ({ to: [{ email: 'a@far.test' }], subject: 'S', ...change })

const makeCaller = (limits = {}) =>
  stage.createCaller({ limits: { messageContentBytes: 40 * mebibyte, ...limits } })

/**
 * Returns the CPU time in ms between two looks of a timer during the work, longest first: of one iteration of the event loop,
 * or of several within the same millisecond. Other load does not count.
 */
async function longestTurns(work: () => Promise<void>): Promise<number[]> {
  const turns: number[] = []
  let before = process.threadCpuUsage()
  const look = () => {
    turns.push(cpuMsSince(before))
    before = process.threadCpuUsage()
  }
  const timer = setInterval(look, 1)
  await work()
  clearInterval(timer)
  return turns.sort((one, other) => other - one)
}

/** The longest turn allowed, in ms: clearly less than the work takes in this thread, on a slow machine too. */
function longestAllowed(work: () => unknown): number {
  work()
  return Math.max(100, 0.6 * cpuMsOf(work))
}

function headersOf({ secret }: Caller) {
  return { 'content-type': 'application/json', 'x-api-key': secret, 'idempotency-key': nextKey() }
}

/** Sends the same bytes `count` times at once. This costs little in this process, which also runs the service. */
function sendAll(caller: Caller, inboxId: string, body: Buffer, count: number): Promise<number[]> {
  const call = () =>
    new Promise<number>((resolve, reject) => {
      const headers = headersOf(caller)
      request(`${stage.base}/v1/inboxes/${inboxId}/messages`, { method: 'POST', headers })
        .on('error', reject)
        .on('response', (response) => response.resume().on('end', () => resolve(response.statusCode!)))
        .end(body)
    })
  return Promise.all(Array.from({ length: count }, call))
}

const html = (bytes: number) => Buffer.from(JSON.stringify(mail({ html: costly(bytes) })))

test('hostile 8: neither refused sends of 1 MB nor accepted ones stall the main thread', async (t) => {
  const caller = await makeCaller()
  const limited = await makeCaller({ messagesPerMinute: 0 })
  const large = html(mebibyte - 200)
  const rounds: [name: string, caller: Caller, inbox: string, status: number, count: number, body: Buffer][] =
    [
      ['of an inbox that does not exist', caller, nowhere, 404, 12, large],
      ['past a limit', limited, (await limited.api.createInbox()).id, 429, 12, large],
      ['accepted', caller, (await caller.api.createInbox()).id, 202, 2, html(mebibyte / 4)],
    ]
  const page = costly(mebibyte)
  const mostMs = longestAllowed(() => htmlToText(page))
  for (const [name, by, inbox, status, count, body] of rounds)
    await t.test(`sends do not stall: ${name}`, async () => {
      const [longest] = await longestTurns(async () => {
        for (const answer of await sendAll(by, inbox, body, count)) assert.equal(answer, status)
      })
      assert.ok(longest! < mostMs, `${longest} of ${mostMs} ms`)
    })
})

test('hostile 8: JSON of 1 MB with as many values as fit does not stall the main thread', async () => {
  const caller = await makeCaller()
  const body = Buffer.from(`{"to":[${'{},'.repeat(mebibyte / 3 - 10)}{}]}`)
  const [longest] = await longestTurns(async () => {
    for (const answer of await sendAll(caller, nowhere, body, 4)) assert.equal(answer, 400)
  })
  const mostMs = longestAllowed(() => JSON.parse(body.toString()))
  assert.ok(longest! < mostMs, `${longest} of ${mostMs} ms`)
})

const content = 10 * mebibyte
const attached = {
  filename: 'a',
  contentType: 'text/plain',
  content: Buffer.alloc(content, 'x').toString('base64'),
}
const shapes: [name: string, body: Buffer][] = [
  ['text', Buffer.from(JSON.stringify(mail({ text: 'xyz '.repeat(content / 4) })))],
  ['escapes', Buffer.from(JSON.stringify(mail({ text: '%' })).replace('%', '\\u0101'.repeat(content / 4)))],
  ['base64', Buffer.from(JSON.stringify(mail({ text: 'T', attachments: [attached] })))],
]

/** Returns the time to read the body in this thread: CPU time and wall time, in ms. */
function readHere(body: Buffer): { cpuMs: number; wallMs: number } {
  const startMs = performance.now()
  const cpuMs = cpuMsOf(() => {
    const value = parseJson(body) as { attachments?: { content: string }[] }
    requestHash({}, value)
    for (const { content } of value.attachments ?? []) decodeBase64(content)
  })
  return { cpuMs, wallMs: performance.now() - startMs }
}

/** Asks repeatedly until the work is done. Returns the median and the longest response time, in ms. */
async function answerTimes(
  { secret }: Caller,
  work: Promise<unknown>,
): Promise<{ middle: number; most: number }> {
  const times: number[] = []
  let isOver = false
  const over = work.then(() => (isOver = true))
  while (!isOver) {
    const startMs = performance.now()
    assert.equal((await ask(stage, 'GET', '/v1/me', { secret })).status, 200)
    times.push(performance.now() - startMs)
  }
  await over
  times.sort((one, other) => one - other)
  return { middle: times[times.length >> 1]!, most: times.at(-1)! }
}

for (const [name, body] of shapes)
  test(`hostile 8: refused bodies of 10 to 15 MB, four at a time, are read outside the main thread: ${name}`, async (t) => {
    const [caller, other] = [await makeCaller(), await makeCaller()]
    readHere(body)
    const here = readHere(body)
    const refuse = async () => {
      for (let round = 0; round < 2; round++)
        for (const answer of await sendAll(caller, nowhere, body, 4)) assert.equal(answer, 404)
    }
    await refuse()
    // Reading eight bodies here would block the event loop eight times. The garbage collector alone blocks it a few times.
    const turn = (await longestTurns(refuse))[4]!
    const asked = await answerTimes(other, refuse())
    t.diagnostic(
      `${body.length} bytes: the fifth longest turn ${turn.toFixed()} ms; reading it here ${here.cpuMs.toFixed()} ms`,
    )
    t.diagnostic(`another's GET: ${asked.middle.toFixed()} ms, ${asked.most.toFixed()} ms at most`)
    assert.ok(turn < Math.max(60, here.cpuMs * 0.75), `${turn} ms of ${here.cpuMs} ms`)
    assert.ok(asked.middle < Math.max(50, here.wallMs), `${asked.middle} ms of ${here.wallMs} ms`)
  })

test('hostile 8: large bodies wait for their own organization, and alternate with others’', async () => {
  const [many, one] = [await makeCaller(), await makeCaller()]
  const body = Buffer.from(JSON.stringify(mail({ text: 'x'.repeat(5 * mebibyte) })))
  let [answered, before] = [0, 0]
  const isBegun = Promise.withResolvers<void>()
  const theirs = Array.from({ length: 8 }, async () => {
    await sendAll(many, nowhere, body, 1)
    answered++
    isBegun.resolve()
  })
  await isBegun.promise
  assert.deepEqual(await sendAll(one, nowhere, body, 1), [404])
  before = answered
  await Promise.all(theirs)
  assert.ok(before <= 6, `${before} of 8 were answered before`)
})

test('hostile 8: a waiting large body is not read once its client has left', async (t) => {
  const caller = await makeCaller()
  const body = Buffer.from(JSON.stringify(mail({ text: 'x'.repeat(5 * mebibyte) })))
  const reads = t.mock.method(LargeBodies.prototype, 'read')
  const leave = () =>
    new Promise<void>((resolve) => {
      const headers = { ...headersOf(caller), 'content-length': body.length }
      const url = `${stage.base}/v1/inboxes/${nowhere}/messages`
      const leaving = request(url, { method: 'POST', headers }).on('error', () => {})
      leaving.on('close', resolve).end(body, () => leaving.destroy())
    })
  await Promise.all(Array.from({ length: 10 }, leave))
  assert.deepEqual(await sendAll(caller, nowhere, body, 1), [404])
  assert.ok(reads.mock.callCount() < 6, `${reads.mock.callCount()} were read`)
})

test('a repeated large send counts as one, however it is written, and its files arrive unchanged', async () => {
  const { send } = await setScene({ messageContentBytes: 40 * mebibyte })
  const key = nextKey()
  const large = { ...withFile, attachments: [file, { ...file, filename: 'b' }] }
  assert.equal((await send(key, large))[0], 202)
  assert.equal((await send(key, Object.fromEntries(Object.entries(large).reverse())))[0], 202)
  const other = { ...large, attachments: [file, { ...file, filename: 'c' }] }
  assert.deepEqual((await send(key, other)).slice(0, 2), [409, 'idempotency_key_reused'])
  const broken = { ...large, attachments: [{ ...file, content: `${file.content.slice(0, -1)}?` }] }
  assert.deepEqual((await send(nextKey(), broken)).slice(0, 2), [400, 'invalid_request'])
})

/** These attachments are too large for a row, so the service writes blobs. */
const file = { filename: 'a', contentType: 'text/plain', content: Buffer.alloc(300_000).toString('base64') }
const withFile = mail({ text: 'T', attachments: [file] })

type SendOutcome = [status: number, error: string | undefined, retryAfter: number, limit: string | null]

interface Scene {
  caller: Caller
  inbox: Inbox
  /** Sends with this idempotency key. */
  send(key: string, body?: object): Promise<SendOutcome>
}

async function setScene(limits = {}): Promise<Scene> {
  const caller = await makeCaller(limits)
  const inbox = await caller.api.createInbox()
  const send = async (idempotencyKey: string, body: object = withFile) => {
    const call = { method: 'POST', idempotencyKey, body }
    const answer = await caller.api.call(`/v1/inboxes/${inbox.id}/messages`, call)
    const retryAfter = Number(answer.headers.get('retry-after'))
    const limit = answer.headers.get('send-limit')
    return [answer.status, answer.body.error, retryAfter, limit] as SendOutcome
  }
  return { caller, inbox, send }
}

const watchBlobs = (t: TestContext) => t.mock.method(stage.blobs, 'put')

test('hostile 8: a refused send writes no blob, whatever refuses it', async (t) => {
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

test('hostile 8: a send past the daily limit is refused early, with the time at which the limit ends', async (t) => {
  const { send } = await setScene({ recipientsPerDay: 1 })
  const blobs = watchBlobs(t)
  assert.equal((await send(nextKey()))[0], 202)
  const [status, , retryAfter, limit] = await send(nextKey())
  const toMidnight = (86_400_000 - (stage.clock.nowMs() % 86_400_000)) / 1000
  assert.equal(status, 429)
  assert.equal(limit, `"recipientsPerDay";q=1;w=86400;t=${retryAfter}`)
  assert.ok(Math.abs(retryAfter - toMidnight) < 10, `${retryAfter} s, and ${toMidnight} s to midnight`)
  assert.equal(blobs.mock.callCount(), 1)
})

test('the text of large HTML is made, stored and counted like that of small HTML', async () => {
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
