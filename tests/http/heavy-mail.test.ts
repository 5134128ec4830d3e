// Reads of mail of any size get an answer, and no answer exceeds its bound.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { maxCutLength } from '../../src/store/mailbox/message-weight.ts'
import type { Inbox, Message } from '../support/api.ts'
import { type Caller, setStage } from './stage.ts'

const stage = await setStage({ after })
const mebibyte = 1 << 20
const maxBytes = 18 * mebibyte
/** JSON of a page of several messages, including the inbox in an export. */
const maxPageBytes = 6 * mebibyte + 2_000

type Shown = Message & { extractedText?: string; truncated?: boolean }

/** Creates an inbox with a thread of received messages, then sets their texts. */
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

/** Returns the log lines that contain these words. */
function logged(words: string): string[] {
  return stage
    .log()
    .split('\n')
    .filter((line) => line.includes(words))
}

/** Reads every page of the list and checks each against the bound. */
async function readPages(caller: Caller, path: string, limit = 50): Promise<Shown[][]> {
  const pages: Shown[][] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const next = cursor && `&cursor=${encodeURIComponent(cursor)}`
    const page = await read(caller, `${path}?limit=${limit}${next}`)
    assert.equal(page.status, 200)
    const max = page.messages.length > 1 ? maxPageBytes : maxBytes
    assert.ok(page.messages.length > 0 && page.bytes <= max, `${page.bytes} bytes`)
    pages.push(page.messages)
    cursor = page.nextCursor
  }
  return pages
}

async function readAll(caller: Caller, path: string): Promise<Shown[]> {
  return (await readPages(caller, path)).flat()
}

for (const [name, text, perPage] of [
  ['half a megabyte', `repeat('x', 500000)`, 2],
  ['half a megabyte of what grows as JSON', `repeat(U&'\\0001', 500000)`, 2],
  ['more than a page holds', `repeat('x', 5000000)`, 1],
] as const)
  test(`hostile 2: pages of messages with ${name} end early, and their cursors continue`, async () => {
    const { caller, paths } = await receive(Array.from({ length: 5 }, () => text))
    for (const path of paths) {
      const pages = await readPages(caller, path, 3)
      const sizes = pages.map(({ length }) => length)
      assert.deepEqual(sizes, perPage === 1 ? [1, 1, 1, 1, 1] : [2, 2, 1])
      const messages = pages.flat()
      assert.equal(new Set(messages.map(({ id }) => id)).size, 5)
      assert.ok(messages.every(({ text: { length }, truncated }) => length % 5e5 === 0 && !truncated))
    }
  })

for (const [name, text] of [
  ['texts', `repeat('x', ${40 * mebibyte})`],
  ['control characters', `repeat(U&'\\0001', ${4 * mebibyte})`],
] as const)
  test(`hostile 2: a message with more ${name} than an answer holds is shown in part, and says so`, async () => {
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

test('hostile 2: a text counts twice if its new text is the same, as both are shown', async () => {
  const { caller, inbox, paths } = await receive([`repeat('x', 500000)`, `repeat('x', 500000)`])
  await stage.db.query('update message set extracted_text = null where inbox_id = $1', [inbox.id])
  assert.equal((await readPages(caller, paths[0]!)).length, 2)
})

test('hostile 2: an answer that cannot be completed breaks off, and never passes for a whole one', async () => {
  const { caller, inbox, paths } = await receive([`repeat('x', ${14 * mebibyte})`])
  const open = async (signal: AbortSignal | null) => {
    const response = await fetch(stage.base + paths[1]!, { headers: { 'x-api-key': caller.secret }, signal })
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
    assert.ok(response.headers.get('ratelimit') && response.headers.get('x-request-id'))
    const reader = response.body!.getReader()
    await reader.read()
    return reader
  }
  // A client that leaves midway disturbs nothing, and is not logged.
  const leaving = new AbortController()
  await open(leaving.signal)
  leaving.abort()
  const reader = await open(null)
  await stage.db.query('delete from message where inbox_id = $1', [inbox.id])
  const readOn = async () => {
    while (!(await reader.read()).done);
  }
  await assert.rejects(readOn(), { message: 'terminated' })
  const lines = logged('response interrupted')
  assert.equal(lines.length, 1)
  assert.match(JSON.parse(lines[0]!).requestId, /^[\w-]{13}/)
})

test('a streamed answer equals one made whole', async () => {
  const { caller, inbox, paths } = await receive([`repeat(E'ä"\\u2028€😀\\n', 10)`, `'after'`])
  const [light] = await readAll(caller, paths[2]!)
  await stage.db.query(`update message set text = repeat(text, 25000) where inbox_id = $1 and seq = 1`, [
    inbox.id,
  ])
  const [long] = await readAll(caller, paths[2]!)
  assert.deepEqual(long, { ...light, text: light!.text.repeat(25_000) })
  // Pieces start inside characters, and the new text excludes what surrounds it.
  for (const [text, cutLength] of [
    [`repeat(E'\\uFEFF😀', 400000)`, Infinity],
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
