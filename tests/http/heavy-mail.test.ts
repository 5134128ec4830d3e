// Mail whose texts weigh what they like: every read of it answers, none with more than an answer may hold.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { maxCutLength } from '../../src/store/mailbox/message-weight.ts'
import type { Inbox, Message } from '../support/api.ts'
import { type Caller, setStage } from './stage.ts'

const stage = await setStage({ after })
const mebibyte = 1 << 20
const maxBytes = 18 * mebibyte

type Shown = Message & { extractedText?: string; truncated?: boolean }

/** An inbox with a thread of received messages, which then get these texts. */
async function receive(texts: string[]): Promise<{ caller: Caller; inbox: Inbox; paths: string[] }> {
  const caller = await stage.createCaller()
  const inbox = await caller.api.createInbox()
  for (const index of texts.keys()) {
    const answered = index > 0 ? 'In-Reply-To: <0@far.test>\n' : ''
    await stage.receive(inbox.address, `Message-ID: <${index}@far.test>\n${answered}Subject: S\n\nT\n`)
  }
  const { messages } = await caller.api.want<{ messages: Shown[] }>(`/v1/inboxes/${inbox.id}/messages`)
  for (const [index, { id }] of messages.reverse().entries())
    await stage.db.query(
      `update message set text = ${texts[index]}, html = 'h', extracted_text = 'x' where id = $1`,
      [id],
    )
  const [{ threadId } = { threadId: '' }] = messages
  const paths = [
    `/v1/inboxes/${inbox.id}/messages`,
    `/v1/threads/${threadId}`,
    `/v1/inboxes/${inbox.id}/export`,
  ]
  return { caller, inbox, paths }
}

interface Page {
  status: number
  bytes: number
  error?: string
  messages: Shown[]
  nextCursor: string | null
}

async function read({ secret }: Caller, path: string): Promise<Page> {
  const response = await fetch(stage.base + path, { headers: { 'x-api-key': secret } })
  const text = await response.text().catch((error) => {
    const id = response.headers.get('x-request-id')!
    throw new Error(`${path} broke off: ${logged(id).join('\n')}`, { cause: error })
  })
  return { status: response.status, bytes: Buffer.byteLength(text), ...JSON.parse(text) }
}

/** The lines of the log with these words. */
function logged(words: string): string[] {
  return stage
    .log()
    .split('\n')
    .filter((line) => line.includes(words))
}

async function readAll(caller: Caller, path: string): Promise<Shown[]> {
  const messages: Shown[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page = await read(caller, path + (cursor && `?cursor=${encodeURIComponent(cursor)}`))
    assert.equal(page.status, 200)
    assert.ok(page.messages.length > 0 && page.bytes <= maxBytes, `${page.bytes} bytes`)
    messages.push(...page.messages)
    cursor = page.nextCursor
  }
  return messages
}

const fives = Array.from({ length: 5 }, () => `repeat('x', ${5 * mebibyte})`)

test('hostile 2: default lists, threads and exports of heavy mail answer, all of it page by page', async () => {
  const { caller, paths } = await receive(fives)
  for (const path of paths) {
    const messages = await readAll(caller, path)
    assert.equal(new Set(messages.map(({ id }) => id)).size, 5)
    for (const { text, truncated } of messages)
      assert.deepEqual([text.length, truncated], [5 * mebibyte, undefined])
  }
})

test('hostile 2: who asks for so many gets so many, or is told to ask for fewer', async () => {
  const { caller, paths } = await receive(fives)
  for (const path of paths) {
    const [refused, page] = [await read(caller, `${path}?limit=4`), await read(caller, `${path}?limit=3`)]
    assert.deepEqual([refused.status, refused.error], [413, 'page_too_large'])
    assert.deepEqual([page.status, page.messages.length], [200, 3])
    assert.ok(page.nextCursor)
  }
})

test('hostile 2: text that grows as JSON is weighed as what it becomes', async () => {
  const controls = Array.from({ length: 5 }, () => `repeat(U&'\\0001', ${mebibyte})`)
  const { caller, paths } = await receive(controls)
  for (const path of paths) {
    const page = await read(caller, path)
    assert.deepEqual([page.status, page.messages.length], [200, 2])
    assert.equal((await readAll(caller, path)).length, 5)
  }
})

for (const [name, text] of [
  ['texts', `repeat('x', ${40 * mebibyte})`],
  ['control characters', `repeat(U&'\\0001', ${4 * mebibyte})`],
] as const)
  test(`hostile 2: one message of more ${name} than an answer holds is shown in part, and says so`, async () => {
    const { caller, paths } = await receive([text, `'after'`])
    const [{ id = '' } = {}] = await readAll(caller, paths[1]!)
    for (const path of [...paths, `/v1/messages/${id}`]) {
      const all = path.includes('/messages/')
        ? [(await read(caller, path)) as unknown as Shown]
        : await readAll(caller, path)
      const heavy = all.find((message) => message.id === id)!
      assert.equal(heavy.truncated, true)
      assert.ok(heavy.text.length > 500_000)
    }
  })

test('hostile 2: what the new text is the same as counts twice, as it is shown twice', async () => {
  const { caller, inbox, paths } = await receive(fives.slice(2))
  await stage.db.query('update message set extracted_text = null where inbox_id = $1', [inbox.id])
  const page = await read(caller, paths[0]!)
  assert.deepEqual([page.status, page.messages.length], [200, 1])
})

/** Begins to read, has something happen while most of the answer is still to be read, and reads the rest. */
async function readAcross({ secret }: Caller, path: string, happen: () => Promise<unknown>): Promise<string> {
  const response = await fetch(stage.base + path, { headers: { 'x-api-key': secret } })
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
  assert.ok(response.headers.get('ratelimit') && response.headers.get('x-request-id'))
  const reader = response.body!.getReader()
  const chunks = [(await reader.read()).value!]
  await happen()
  for (let next = await reader.read(); !next.done; next = await reader.read()) chunks.push(next.value)
  return Buffer.concat(chunks).toString()
}

const beforeAnother = [`repeat('x', ${14 * mebibyte})`, `repeat('y', ${mebibyte})`]

test('hostile 2: a message that goes while its page is read is left out', async () => {
  const { caller, inbox, paths } = await receive(beforeAnother)
  const remove = () => stage.db.query(`delete from message where inbox_id = $1 and seq = 2`, [inbox.id])
  const { messages } = JSON.parse(await readAcross(caller, paths[2]!, remove)) as Page
  assert.deepEqual(
    messages.map(({ text }) => text.length),
    [14 * mebibyte],
  )
})

test('hostile 2: an answer that cannot be read to its end breaks off, and never passes for a whole one', async () => {
  const { caller, inbox, paths } = await receive(beforeAnother)
  const [, thread, all] = paths
  const setStatus = (status: string) =>
    stage.db.query(`update inbox set status = $2, deleted_at = now() where id = $1`, [inbox.id, status])
  // Whoever leaves midway breaks nothing off, and is not logged.
  const leaving = new AbortController()
  const left = await fetch(stage.base + all, {
    headers: { 'x-api-key': caller.secret },
    signal: leaving.signal,
  })
  await left.body!.getReader().read()
  leaving.abort()
  await assert.rejects(
    readAcross(caller, all!, () => setStatus('deleted')),
    { message: 'terminated' },
  )
  await setStatus('active')
  const remove = () => stage.db.query(`delete from message where inbox_id = $1 and seq = 1`, [inbox.id])
  await assert.rejects(readAcross(caller, thread!, remove), { message: 'terminated' })
  const lines = logged('an answer broke off')
  assert.equal(lines.length, 2)
  for (const line of lines) assert.match(JSON.parse(line).requestId, /^[\w-]{13}/)
})

test('what is streamed and what is made whole say the same', async () => {
  const { caller, inbox, paths } = await receive([`repeat(E'ä"\\u2028€😀\\n', 10)`, `'after'`])
  const [light] = await readAll(caller, paths[2]!)
  await stage.db.query(
    `update message set text = repeat('z', ${2 * mebibyte}) where inbox_id = $1 and seq = 2`,
    [inbox.id],
  )
  const [streamed] = await readAll(caller, paths[2]!)
  assert.deepEqual(streamed, light)
  await stage.db.query(`update message set text = repeat(text, 20000) where inbox_id = $1 and seq = 1`, [
    inbox.id,
  ])
  const [long] = await readAll(caller, paths[2]!)
  assert.deepEqual(long, { ...light, text: light!.text.repeat(20_000) })
  // Pieces begin within characters, and what is around the new text is not part of it.
  for (const [text, cutLength] of [
    [`repeat(E'\\uFEFF😀', 200000)`, Infinity],
    [`repeat('😀', 5000000)`, maxCutLength],
  ] as const) {
    const set = `text = E' \\r\\n\\t' || ${text} || E'\\n ', html = null, extracted_text = null`
    await stage.db.query(`update message set ${set} where inbox_id = $1 and seq = 1`, [inbox.id])
    const [row] = await stage.db.query<{ text: string }>(
      'select text from message where inbox_id = $1 and seq = 1',
      [inbox.id],
    )
    const [shown] = await readAll(caller, paths[2]!)
    const beginning = (whole: string) => [...whole].slice(0, cutLength).join('')
    assert.ok(shown!.text === beginning(row!.text))
    assert.ok(shown!.extractedText === beginning(row!.text.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, '')))
  }
})
