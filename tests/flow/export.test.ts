// The export of an inbox: complete and in order during writes, resumable, gone with the inbox. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { randomInt, randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import type { Caller } from '../../src/flow/caller.ts'
import { deleteInbox } from '../../src/flow/mailbox/delete-inbox.ts'
import { exportPage } from '../../src/flow/reading/read-mailbox.ts'
import type { Queryable } from '../../src/postgres/db.ts'
import type { Api, Inbox, Message } from '../support/api.ts'
import { fakeClamd, streamed } from '../support/clamd.ts'
import { makePlace, send, startNode, type TestCaller, type TestNode } from '../support/node.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

// Two nodes over one database that scan what they file.
const place = await makePlace({ after })
const clamd = await fakeClamd(place, (socket, received) => {
  if (streamed(received)) socket.end('stream: OK\0')
})
const env = { POSTHORN_DELIVERY: 'capture', POSTHORN_CLAMD: `${clamd.host}:${clamd.port}` }
const start = () => startNode(place, { env })
const nodes = [await start(), await start()]

interface Stage {
  caller: TestCaller
  inbox: Inbox
}

async function setStage(): Promise<Stage> {
  const caller = await nodes[0]!.createCaller()
  return { caller, inbox: await caller.api.createInbox() }
}

interface Page {
  formatVersion: number
  inbox: Inbox
  messages: Message[]
  nextCursor: string | null
}

const pathOf = ({ id }: Inbox, limit: number, cursor: string | null) =>
  `/v1/inboxes/${id}/export?limit=${limit}${cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`}`

async function receive(node: TestNode, { address }: Inbox, messageId: string): Promise<void> {
  const raw = Buffer.from(
    `Message-ID: ${messageId}\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nText\r\n` +
      '--b\r\nContent-Disposition: attachment; filename=a\r\n\r\nx\r\n--b--\r\n',
  )
  const sent = await sendMail(node.smtp, { from: 'a@far.test', to: address, raw })
  assert.equal(sent.outcome, 'accepted')
}

/** Writes to the inbox until `isOver`: receives mail, sends mail, and deletes some of the received mail. */
async function write({ caller, inbox }: Stage, isOver: () => boolean): Promise<string[]> {
  const sent: string[] = []
  while (!isOver()) {
    const node = nodes[sent.length % 2]!
    await receive(node, inbox, `<${randomUUID()}@far.test>`)
    const { message } = await send(node.meet(caller), inbox, ['x@far.test'])
    sent.push(message.id)
  }
  return sent
}

test('check 76: an export during arrivals, sends, deletions and scans has each lasting message, once, in order', async () => {
  const stage = await setStage()
  const { caller, inbox } = stage
  const apis = nodes.map((node) => node.meet(caller))
  for (let i = 0; i < 24; i++) {
    await receive(nodes[i % 2]!, inbox, `<first-${i}@far.test>`)
    await send(apis[i % 2]!, inbox, ['x@far.test'])
  }
  const first = await until('all to arrive', async () => {
    const messages = await apis[0]!.exported(inbox.id)
    return messages.length === 48 ? messages.map(({ id }) => id) : null
  })
  let isOver = false
  const writing = Promise.all([write(stage, () => isOver), write(stage, () => isOver)])
  const deleted = new Set<string>()
  const seen: string[] = []
  let sent: string[] = []
  // Each page comes from another node and has another size. Between two pages, read and unread messages are deleted.
  for (let number = 0, cursor: string | null = null; ; number++) {
    if (number === 40) {
      isOver = true
      sent = (await writing).flat()
    }
    const page: Page = await apis[number % 2]!.want(pathOf(inbox, randomInt(1, 9), cursor))
    assert.equal(page.formatVersion, 1)
    // If the export ends before the writers do, its last page is read again.
    if (page.nextCursor !== null || isOver) seen.push(...page.messages.map(({ id }) => id))
    if (page.nextCursor === null && isOver) break
    cursor = page.nextCursor ?? cursor
    const victim = first[randomInt(first.length)]!
    const { status } = await apis[0]!.call(`/v1/messages/${victim}`, { method: 'DELETE' })
    if (status === 204) deleted.add(victim)
  }
  assert.equal(new Set(seen).size, seen.length, 'each once')
  for (const id of first) if (!deleted.has(id)) assert.ok(seen.includes(id), 'what was there throughout')
  for (const id of sent) assert.ok(seen.includes(id), 'what was sent before the last page')
  const order = await nodes[0]!.foundation.db.query<{ id: string; seq: number }>(
    'select id, seq from message where inbox_id = $1',
    [inbox.id],
  )
  const seqOf = new Map(order.map(({ id, seq }) => [id, seq]))
  const seqs = seen.flatMap((id) => seqOf.get(id) ?? [])
  assert.deepEqual(
    seqs,
    seqs.toSorted((a, b) => a - b),
  )
})

// This test stops one of the nodes. No later test needs it.
test('check 76: a cursor works after a restart and at another node, and is refused elsewhere', async () => {
  const { caller, inbox } = await setStage()
  for (let i = 0; i < 5; i++) await send(caller.api, inbox, ['x@far.test'])
  const stopped = nodes[1]!
  const page = await stopped.meet(caller).want<Page>(pathOf(inbox, 2, null))
  await stopped.stop()
  const { api } = caller
  const rest = await api.want<Page>(pathOf(inbox, 100, page.nextCursor))
  assert.equal(rest.nextCursor, null)
  const all = await api.exported(inbox.id)
  assert.deepEqual(
    [...page.messages, ...rest.messages].map(({ id }) => id),
    all.map(({ id }) => id),
  )
  const [other, stranger] = [await api.createInbox(), await nodes[0]!.createCaller()]
  const refusals: [Api, string, number, string][] = [
    [api, pathOf(other, 2, page.nextCursor), 400, 'invalid_cursor'],
    [api, pathOf(inbox, 2, `${page.nextCursor}x`), 400, 'invalid_cursor'],
    [stranger.api, pathOf(inbox, 2, page.nextCursor), 400, 'invalid_cursor'],
    [stranger.api, pathOf(inbox, 2, null), 404, 'not_found'],
  ]
  for (const [by, path, status, error] of refusals) {
    const answer = await by.call(path)
    assert.deepEqual([answer.status, answer.body.error], [status, error], path)
  }
})

// The last test: it moves the clock of a node by a month.
test('check 76: the export of a deleted inbox is 410 for 30 days, then 404, and never a false end', async () => {
  const { caller, inbox } = await setStage()
  const { db, clock } = nodes[0]!.foundation
  for (let i = 0; i < 3; i++) await send(caller.api, inbox, ['x@far.test'])
  const { nextCursor } = await caller.api.want<Page>(pathOf(inbox, 1, null))
  await until('what was sent to go out', async () => {
    const pending = `select from submission where status = 'pending' and inbox_id = $1`
    return (await db.query(pending, [inbox.id])).length === 0
  })
  const whole = { organizationId: caller.organizationId, inboxIds: null } as unknown as Caller
  // The inbox is deleted at the worst moment: after the page has read the inbox and before it reads the messages.
  const racing: Queryable = {
    query: async (text, values) => {
      if (text.includes('from message')) await deleteInbox({ db, clock }, whole, inbox.id)
      return await db.query(text, values)
    },
  }
  await assert.rejects(exportPage({ db: racing, clock }, whole, inbox.id, 0, 50), { code: 'inbox_deleted' })
  const answer = async (cursor: string | null) => {
    const { status, body } = await caller.api.call(pathOf(inbox, 1, cursor))
    return [status, body.error]
  }
  for (const days of [0, 29]) {
    clock.advance(days * 86_400_000)
    for (const cursor of [null, nextCursor]) assert.deepEqual(await answer(cursor), [410, 'inbox_deleted'])
  }
  clock.advance(86_400_000 + 60_000)
  for (const cursor of [null, nextCursor]) assert.deepEqual(await answer(cursor), [404, 'not_found'])
})
