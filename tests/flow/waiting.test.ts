// Waiting for mail: complete, immediate, on any node, cheap, bounded in number and in time.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { meters } from '../../src/base/meters.ts'
import { endKey } from '../../src/flow/accounts/key.ts'
import { purgeTombstones } from '../../src/flow/upkeep/purge-tombstones.ts'
import { Db, type Queryable } from '../../src/postgres/db.ts'
import { findGrown } from '../../src/store/mailbox/inboxes.ts'
import { listFollowing } from '../../src/store/mailbox/message-pages.ts'
import { addKey } from '../support/agent-key.ts'
import type { Api, Inbox, Message } from '../support/api.ts'
import { makePlace, send, startNode } from '../support/node.ts'
import { testDatabase, turnAutovacuumOff } from '../support/postgres.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

const env = { POSTHORN_DELIVERY: 'capture' }
const day = 86_400_000

interface Page {
  messages: Message[]
  nextCursor: string | null
}

const place = await makePlace({ after })
const node = await startNode(place, { env })

async function setStage() {
  const caller = await node.createCaller()
  return { caller, inbox: await caller.api.createInbox() }
}

async function mailTo({ address }: Inbox, subject: string): Promise<void> {
  const raw = Buffer.from(`From: a@far.test\r\nSubject: ${subject}\r\n\r\nText\r\n`)
  const { outcome, reply } = await sendMail(node.smtp, { from: 'a@far.test', to: address, raw })
  assert.equal(outcome, 'accepted', reply)
}

const path = ({ id }: Inbox, query: string) => `/v1/inboxes/${id}/messages?${query}`
const ask = (api: Api, inbox: Inbox, query: string) =>
  api.call<Page>(path(inbox, query), { timeoutMs: 90_000 })
const subjectsOf = ({ messages }: Page) => messages.map(({ subject }) => subject)

/** Counts waiting requests of all nodes in this process. */
async function countWaiting(): Promise<number> {
  const { values } = await meters.waiting.get()
  return values[0]?.value ?? 0
}

test('waiting: a request follows one direction, page by page, whatever else arrives', async () => {
  const { caller, inbox } = await setStage()
  const { api } = caller
  for (const subject of ['1', '2', '3']) {
    await send(api, inbox, ['a@far.test'])
    await mailTo(inbox, subject)
  }
  const received: string[] = []
  for (let after = '0'; received.length < 3; ) {
    const { body } = await ask(api, inbox, `after=${after}&direction=inbound&wait=20&limit=2`)
    received.push(...subjectsOf(body))
    after = body.messages.at(-1)!.id
  }
  assert.deepEqual(received, ['1', '2', '3'])
  const fromMs = performance.now()
  const [waiting] = [ask(api, inbox, `after=${await lastOf(api, inbox)}&direction=inbound&wait=2`)]
  await send(api, inbox, ['a@far.test'])
  assert.deepEqual((await waiting).body, { messages: [], nextCursor: null })
  assert.ok(performance.now() - fromMs >= 1_900)
  const first = await ask(api, inbox, 'after=0&limit=3')
  const rest = await ask(api, inbox, `after=0&limit=5&cursor=${first.body.nextCursor}`)
  assert.deepEqual([...first.body.messages, ...rest.body.messages].map(({ direction }) => direction).sort(), [
    ...Array(3).fill('inbound'),
    ...Array(4).fill('outbound'),
  ])
  assert.equal(rest.body.nextCursor, null)
})

async function lastOf(api: Api, inbox: Inbox): Promise<string> {
  const { messages } = await api.want<Page>(path(inbox, 'after=0&direction=inbound'))
  return messages.at(-1)!.id
}

// Asks another node as well.
test('waiting: the answer comes at once, on the filing node and on another', async (t) => {
  const { caller, inbox } = await setStage()
  const other = await startNode(place, { env, roles: ['api'] })
  t.after(() => other.stop())
  for (const [name, at] of [
    ['same', node],
    ['other', other],
  ] as const) {
    const api = at.meet(caller)
    const tookMs: number[] = []
    for (let n = 0; n < 15; n++) {
      const waiting = ask(
        api,
        inbox,
        `after=${n === 0 && name === 'same' ? 0 : await lastOf(api, inbox)}&direction=inbound&wait=30`,
      )
      await until('it to wait', async () => (await countWaiting()) > 0, { everyMs: 5 })
      await mailTo(inbox, `${name} ${n}`)
      const fromMs = performance.now()
      assert.deepEqual(subjectsOf((await waiting).body), [`${name} ${n}`])
      tookMs.push(performance.now() - fromMs)
    }
    const median = tookMs.sort((a, b) => a - b)[7]!
    t.diagnostic(
      `from 250 to the answer, ${name} node: median ${median.toFixed(0)} ms, slowest ${tookMs.at(-1)!.toFixed(0)} ms`,
    )
    assert.ok(median < 1_000, `${median} ms`)
  }
})

test('waiting: a key has at most 250 waiting requests, and an ended one makes room', async () => {
  const { caller, inbox } = await setStage()
  const leaving = new AbortController()
  const { host, port } = node.app.listening.http!
  const url = `http://${host}:${port}${path(inbox, 'after=0&wait=60')}`
  const headers = { 'x-api-key': caller.secret }
  const waiting = Array.from({ length: 250 }, () =>
    fetch(url, { headers, signal: leaving.signal }).catch(() => null),
  )
  await until('all to wait', async () => (await countWaiting()) === 250)
  const refused = await ask(caller.api, inbox, 'after=0&wait=60')
  assert.deepEqual(
    [refused.status, (refused.body as never as { error: string }).error],
    [429, 'rate_limited'],
  )
  assert.ok(Number(refused.headers.get('retry-after')) > 0)
  // A request that need not wait is answered.
  assert.equal((await ask(caller.api, inbox, 'after=0')).status, 200)
  const own = await addKey(node, caller, {})
  const [another] = [ask(node.meet(own), inbox, 'after=0&wait=30')]
  await until('it to wait', async () => (await countWaiting()) === 251)
  leaving.abort()
  await Promise.all(waiting)
  await until('the others to have gone', async () => (await countWaiting()) === 1)
  const again = ask(caller.api, inbox, 'after=0&wait=30')
  await mailTo(inbox, 'there')
  for (const { body } of [await another, await again]) assert.deepEqual(subjectsOf(body), ['there'])
})

test('waiting: a key that was revoked, or an inbox that was deleted, gets no mail', async () => {
  const { caller, inbox } = await setStage()
  const key = await addKey(node, caller, { inboxIds: [inbox.id as never], scopes: ['mailbox:read'] })
  const api = node.meet(key)
  const other = await caller.api.createInbox()
  assert.equal((await ask(api, other, 'after=0&wait=1')).status, 403)
  const waiting = ask(api, inbox, 'after=0&wait=60')
  await until('it to wait', async () => (await countWaiting()) === 1)
  await endKey(node.foundation, key.keyId)
  await mailTo(inbox, 'not for it')
  assert.equal((await waiting).status, 401)
  const gone = ask(caller.api, other, 'after=0&wait=60')
  await until('it to wait', async () => (await countWaiting()) === 1)
  await caller.api.want(`/v1/inboxes/${other.id}`, { method: 'DELETE', status: 204 })
  assert.equal((await gone).status, 404)
})

test('waiting: the next messages are found without reading sent ones, and a thousand inboxes in one statement', async (t) => {
  // One connection, so that the plans made over empty tables are the plans that run.
  const db = new Db({ connection: await testDatabase(t), maxConnections: 1 })
  t.after(() => db.close())
  await turnAutovacuumOff(db)
  const organization = randomUUID()
  const follow = (tx: Queryable, inboxId: string, direction: 'inbound' | null, afterSeq: number) =>
    listFollowing(tx, { inboxId: inboxId as never, direction }, afterSeq, 10)
  await follow(db, 'inb_0', 'inbound', 0)
  await db.query(
    `insert into organization (id, name, status, limits, created_at, updated_at) values ($1, '', 'active', '{}', now(), now())`,
    [organization],
  )
  await db.query(
    `insert into inbox (id, organization_id, local_part, domain, display_name, status, message_seq, created_at, updated_at)
    select 'inb_' || n, $1, n::text, 'inbox.test', '', 'active', 3000, now(), now() from generate_series(0, 999) n`,
    [organization],
  )
  await db.query(
    `insert into message (id, organization_id, inbox_id, thread_id, seq, direction, internet_message_id, reference_ids,
      sender, recipients, subject, text, metadata, purpose, attachments, created_at, updated_at)
    select 'msg_' || lpad(n::text, 24, '0'), $1, 'inb_0', 'thr', n, case when n in (5, 2999) then 'inbound' else 'outbound' end,
      '<' || n || '>', '{}', '{}', '{"to": []}', n::text, '', '{}', '', '[]', now(), now() from generate_series(1, 3000) n`,
    [organization],
  )
  await db.transaction(async (tx) => {
    const rows = async () => {
      const [row] = await tx.query<{ rows: number }>(
        `select coalesce(idx_tup_fetch, 0) + seq_tup_read as rows from pg_stat_xact_user_tables where relname = 'message'`,
      )
      return row!.rows
    }
    const before = await rows()
    const { page } = await follow(tx, 'inb_0', 'inbound', 5)
    assert.deepEqual(
      (page as { subject: string }[]).map(({ subject }) => subject),
      ['2999'],
    )
    assert.ok((await rows()) - before < 20, `${(await rows()) - before} messages`)
    const both = await follow(tx, 'inb_0', null, 2990)
    assert.deepEqual(
      (both.page as { seq: number }[]).map(({ seq }) => seq),
      Array.from({ length: 10 }, (_, n) => 2991 + n),
    )
  })
  const seen = new Map(Array.from({ length: 1_000 }, (_, n) => [`inb_${n}`, n === 7 ? 2999 : 3000]))
  const tookMs: number[] = []
  for (let n = 0; n < 20; n++) {
    const fromMs = performance.now()
    assert.deepEqual(await findGrown(db, seen), [{ inboxId: 'inb_7', seq: 3000 }])
    tookMs.push(performance.now() - fromMs)
  }
  t.diagnostic(`1,000 inboxes are asked for in ${tookMs.sort((a, b) => a - b)[10]!.toFixed(1)} ms`)
  assert.deepEqual(await findGrown(db, new Map([['inb_gone', 0]])), [{ inboxId: 'inb_gone', seq: null }])
})

// The last but one: it moves the clock by a month, after which deletions are forgotten.
test('waiting: a deleted message’s id works like any other for 30 days', async () => {
  const { caller, inbox } = await setStage()
  const { api } = caller
  const sent: { id: string }[] = []
  for (const text of ['1', '2', '3']) sent.push((await send(api, inbox, ['a@far.test'], { text })).message)
  await until('all to have gone', async () => {
    const { messages } = await api.want<Page>(path(inbox, ''))
    return messages.every(({ delivery }) => delivery.status === 'delivered')
  })
  for (const { id } of sent.slice(0, 2))
    await api.want(`/v1/messages/${id}`, { method: 'DELETE', status: 204 })
  const behind = async (message: { id: string }) => {
    const { status, body } = await ask(api, inbox, `after=${message.id}`)
    return [status, body.messages?.map(({ id }) => id)]
  }
  assert.deepEqual(await behind(sent[0]!), [200, [sent[2]!.id]])
  assert.deepEqual(await behind(sent[1]!), [200, [sent[2]!.id]])
  const other = await api.createInbox()
  assert.equal((await ask(api, other, `after=${sent[1]!.id}`)).status, 400)
  const stranger = await node.createCaller()
  assert.equal(
    (await ask(stranger.api, await stranger.api.createInbox(), `after=${sent[1]!.id}`)).status,
    400,
  )
  node.foundation.clock.advance(31 * day)
  // A message deleted now is still known when the others are forgotten.
  await api.want(`/v1/messages/${sent[2]!.id}`, { method: 'DELETE', status: 204 })
  const first = await purgeTombstones(node.foundation, 1)
  assert.ok(first)
  assert.equal(await purgeTombstones(node.foundation, 500, first), null)
  assert.deepEqual(await Promise.all(sent.map(async (one) => (await behind(one))[0])), [400, 400, 200])
})

// The last test: it stops the node.
test('waiting: waiting requests cost a few statements a second, hold no connection, and end with a stop', async (t) => {
  const { caller } = await setStage()
  const inboxes: Inbox[] = []
  while (inboxes.length < 100) inboxes.push(await caller.api.createInbox())
  const waiting = inboxes.map((inbox) => ask(caller.api, inbox, 'after=0&wait=60'))
  await until('all to wait', async () => (await countWaiting()) === 100)
  const countStatements = async () => {
    const { values } = await meters.querySeconds.get()
    return values.find(({ metricName }) => metricName?.endsWith('_count'))!.value
  }
  const [before, fromMs] = [await countStatements(), performance.now()]
  let busy = 0
  await until('two seconds to pass', () => {
    busy += node.foundation.db.pool.busy > 3 ? 1 : 0
    return performance.now() - fromMs > 2_000
  })
  const count = (await countStatements()) - before
  t.diagnostic(`${count} statements of the whole node in 2 s while 100 wait`)
  assert.ok(count < 400, `${count} statements`)
  assert.ok(busy < 20, `${busy} of 100 looks found more than three connections busy`)
  const stopped = performance.now()
  const stopping = node.stop()
  for (const { status, body } of await Promise.all(waiting))
    assert.deepEqual([status, body], [200, { messages: [], nextCursor: null }])
  const tookMs = performance.now() - stopped
  assert.ok(tookMs < 2_000, `${tookMs} ms`)
  await stopping
})
