// Retention deletes expired data in small steps, and never anything else. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { firstMessageIdAt } from '../../src/base/ids.ts'
import { OldMessages } from '../../src/flow/mailbox/old-messages.ts'
import { removeOldAudit } from '../../src/flow/upkeep/remove-old-audit.ts'
import type { Db } from '../../src/postgres/db.ts'
import type { Acceptance, Message } from '../support/api.ts'
import { proveDomain } from '../support/customer-domain.ts'
import { DnsServer } from '../support/dns-server.ts'
import { findLeftovers } from '../support/leftovers.ts'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

const dayMs = 86_400_000
const raw = (words: string) => Buffer.from(`From: a@far.test\r\nSubject: ${words}\r\n\r\n${words}\r\n`)

interface MessageList {
  messages: Message[]
}

// The node of the first two tests, which move its clock. The first leaves no message for the second to remove.
const place = await makePlace({ after })
const sink = await startSink(place)
const relay = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url, POSTHORN_RETRY_LIFETIME: '90d' }
const node = await startNode(place, { env: relay })

// The node of the next two tests, which deliver nothing. The second moves its clock back.
const other = await makePlace({ after })
const receiving = await startNode(other, { roles: ['api', 'mx', 'jobs'] })

test('a message with pending delivery stays, however old, and is removed afterwards', async () => {
  sink.rule = ({ stage }) => (stage === 'rcpt' ? '450 4.2.1 later' : null)
  const { db, clock, blobs } = node.foundation
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  const { submission, message } = await send(api, inbox, ['someone@far.test'])
  await untilStates(api, submission.id, 'deferred')
  clock.advance(20 * dayMs)
  const remover = new OldMessages({ db, clock, blobs }, 7 * dayMs)
  assert.equal(await remover.removeNext(1), true)
  assert.equal(await remover.removeNext(1), false)
  await api.want(`/v1/messages/${message.id}`)
  await until('it to be cancelled', async () => {
    const answer = await api.call(`/v1/submissions/${submission.id}/cancel`, { method: 'POST' })
    return answer.status === 200
  })
  assert.equal(await remover.removeNext(1), true)
  assert.equal((await api.call(`/v1/messages/${message.id}`)).status, 404)
})

test('old messages are removed with threads, bytes and files, and a reader’s cursor stays valid', async () => {
  sink.rule = () => null
  const { db, clock, blobs } = node.foundation
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  const listed = async (query = '') =>
    (await api.want<MessageList>(`/v1/inboxes/${inbox.id}/messages${query}`)).messages
  const receive = async (bytes: Buffer, count: number) => {
    const sent = await sendMail(node.smtp, { from: 'a@far.test', to: inbox.address, raw: bytes })
    assert.equal(sent.outcome, 'accepted')
    await until('it to be filed', async () => (await listed()).length === count)
  }
  await receive(raw('first'), 1)
  await receive(Buffer.concat([raw('large'), Buffer.from('a line of it\r\n'.repeat(40_000))]), 2)
  const sent = await send(api, inbox, ['someone@far.test'], { key: 'first-key' })
  await untilStates(api, sent.submission.id, 'delivered')
  const old = await listed()
  const [{ blob } = { blob: '' }] = await db.query<{ blob: string }>(
    'select blob from raw where blob is not null',
  )
  assert.ok(await blobs.has(blob))
  const [first] = await listed('?after=0&limit=1')

  clock.advance(20 * dayMs)
  await receive(raw('young'), 4)
  const remover = new OldMessages({ db, clock, blobs }, 30 * dayMs)
  assert.equal(await remover.removeNext(100), false)
  assert.equal((await listed()).length, 4)
  clock.advance(11 * dayMs)
  // Two, then one, and the round is over.
  assert.equal(await remover.removeNext(2), true)
  assert.equal((await listed()).length, 2)
  assert.equal(await remover.removeNext(2), false)
  const left = await listed()
  assert.deepEqual(
    left.map(({ subject }) => subject),
    ['young'],
  )
  for (const { id } of old) assert.equal((await api.call(`/v1/messages/${id}`)).status, 404)
  assert.deepEqual(await listed(`?after=${first!.id}`), left)
  const exported = await api.exported(inbox.id)
  assert.deepEqual(
    exported.map(({ id }) => id),
    left.map(({ id }) => id),
  )
  assert.ok(!(await blobs.has(blob)))
  assert.deepEqual(await findLeftovers(db), [])
  // As after a deletion: the submission keeps its recipients, and the key answers that its result is gone.
  const told = await api.want<Acceptance['submission']>(`/v1/submissions/${sent.submission.id}`)
  assert.equal(told.status, 'delivered')
  const again = await api.call(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    idempotencyKey: 'first-key',
    body: { to: [{ email: 'someone@far.test' }], subject: 'Test', text: 'Hello.' },
  })
  assert.equal(again.status, 410)
})

/** Counts the rows that each transaction of `work` deletes from the table. */
function counting(db: Db, table: string): { db: Db; steps: number[] } {
  const steps: number[] = []
  const count = async () => (await db.query<{ n: number }>(`select count(*) as n from ${table}`))[0]!.n
  const transaction = async (work: Parameters<Db['transaction']>[0]) => {
    const before = await count()
    const result = await db.transaction(work)
    steps.push(before - (await count()))
    return result
  }
  return { db: { query: db.query.bind(db), transaction } as unknown as Db, steps }
}

/** Copies each of two messages 5,000 times, in ten threads of 1,000, with ids that begin with `start`. */
async function multiply(db: Db, start: string): Promise<void> {
  const [{ columns } = { columns: '' }] = await db.query<{ columns: string }>(
    `select string_agg('m.' || column_name, ', ') as columns from information_schema.columns
    where table_name = 'message' and is_generated = 'NEVER' and column_name not in ('id', 'thread_id', 'seq')`,
  )
  await db.query('update inbox set message_seq = message_seq + 20000')
  await db.query(
    `insert into thread select 'thr_' || $1 || lpad(to_hex(n * 2 + i), 12, '0'), t.organization_id, t.inbox_id, t.subject,
      t.participants, 1000, t.last_message_at, t.created_at
    from (select *, row_number() over (order by id) - 1 as i from thread) t cross join generate_series(0, 4) n`,
    [start],
  )
  await db.query(
    `insert into message (id, thread_id, seq, ${columns.replaceAll('m.', '')})
    select 'msg_' || $1 || lpad(to_hex(n * 2 + i), 12, '0'), 'thr_' || $1 || lpad(to_hex(n % 5 * 2 + i), 12, '0'), 10 + n, ${columns}
    from (select *, (select count(*) from thread t where t.id < m.thread_id and t.id not like 'thr_' || $1 || '%') as i from message m) m
    cross join generate_series(0, 4999) n`,
    [start],
  )
}

test('10,000 messages and 10,000 audit entries are removed in bounded steps', async () => {
  const { db, clock, blobs } = receiving.foundation
  const { api, organizationId } = await receiving.createCaller()
  for (const { id, address: to } of [await api.createInbox(), await api.createInbox()]) {
    // The search makes the inbox indexed.
    await api.want(`/v1/inboxes/${id}/messages?q=model`)
    await sendMail(receiving.smtp, { from: 'a@far.test', to, raw: raw('model') })
  }
  const rows = async (table: string) => (await db.query(`select from ${table}`)).length
  await until('both to be filed and searchable', async () => (await rows('message_search')) === 2)
  const start = firstMessageIdAt(Math.floor(clock.nowMs() - 60 * dayMs)).slice(4)
  await multiply(db, start)
  assert.equal(await rows('message'), 10_002)
  const messages = counting(db, 'message')
  const remover = new OldMessages({ db: messages.db, clock, blobs }, 30 * dayMs)
  while (await remover.removeNext(100));
  assert.equal(
    messages.steps.reduce((sum, step) => sum + step, 0),
    10_000,
  )
  assert.ok(messages.steps.every((step) => step <= 100))
  assert.equal(await rows('message'), 2)
  assert.deepEqual(await findLeftovers(db), [])

  const young = await rows('audit_entry')
  await db.query(
    `insert into audit_entry (id, organization_id, actor, action, subject, detail, at)
    select (left($1, 8) || '-' || right($1, 4) || '-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, $2, 'x', 'x', 'x', '{}', now()
    from generate_series(1, 10000) n`,
    [start, organizationId],
  )
  const audit = counting(db, 'audit_entry')
  while (await removeOldAudit({ db: audit.db, clock }, 30 * dayMs, 500));
  assert.ok(audit.steps.every((step) => step <= 500))
  assert.equal(await rows('audit_entry'), young)
})

// Uses another node, which has the setting.
test('the service applies POSTHORN_RETENTION', async (t) => {
  const { db, clock } = receiving.foundation
  const { api } = await receiving.createCaller()
  const inbox = await api.createInbox()
  await sendMail(receiving.smtp, { from: 'a@far.test', to: inbox.address, raw: raw('young') })
  const filed = async (count: number) =>
    (await db.query('select from message where inbox_id = $1', [inbox.id])).length === count
  await until('it to be filed', () => filed(1))
  clock.advance(-8 * dayMs)
  await sendMail(receiving.smtp, { from: 'a@far.test', to: inbox.address, raw: raw('old') })
  await until('both to be filed', () => filed(2))
  const retaining = await startNode(other, { env: { POSTHORN_RETENTION: 'messages=7d' }, roles: ['jobs'] })
  t.after(() => retaining.stop())
  await until('the young one alone to be there', async () => {
    const { messages } = await api.want<MessageList>(`/v1/inboxes/${inbox.id}/messages`)
    return messages.map(({ subject }) => subject).join() === 'young'
  })
})

// Nodes of its own: it begins a month ago, and each of the jobs has a setting of its own.
test('content of a send without an inbox stays for its set time, and while its mail is tried', async (t) => {
  const place = await makePlace(t)
  const isLater = (command: string) => command.includes('later@')
  const sink = await startSink(place, {
    rule: ({ stage, command }) => (stage === 'rcpt' && isLater(command) ? '450 4.2.1 later' : null),
  })
  const dns = await DnsServer.start({})
  place.after(() => dns.close())
  const node = await startNode(place, {
    env: {
      ...relay,
      POSTHORN_RELAY_URL: sink.url,
      POSTHORN_DNS: dns.address,
      POSTHORN_MAIL_HOST: 'mx.posthorn.test',
    },
    roles: ['api', 'mx', 'delivery'],
  })
  const { db, clock } = node.foundation
  clock.advance(-31 * dayMs)
  const { api } = await node.createCaller()
  await proveDomain(api, dns, 'hotel.example', ['outbound'])
  const sendDirectly = async (to: string, state: string) => {
    const from = { email: 'desk@hotel.example' }
    const { id } = await api.want<{ id: string }>('/v1/send', {
      method: 'POST',
      status: 202,
      idempotencyKey: randomUUID(),
      body: { from, to: [{ email: to }], subject: 'Your booking', text: 'Room 7' },
    })
    await untilStates(api, id, state)
    return id
  }
  const ids: Record<string, string> = {}
  ids['waiting'] = await sendDirectly('later@far.test', 'deferred')
  ids['month'] = await sendDirectly('ada@far.test', 'delivered')
  clock.advance(27 * dayMs)
  ids['days'] = await sendDirectly('ada@far.test', 'delivered')
  clock.advance(4 * dayMs)
  ids['young'] = await sendDirectly('ada@far.test', 'delivered')

  const kept = async () => {
    const rows = await db.query<{ id: string }>('select submission_id as id from send_content')
    const left = new Set(rows.map(({ id }) => id))
    return Object.keys(ids)
      .filter((name) => left.has(ids[name]!))
      .join(' ')
  }
  assert.equal(await kept(), 'waiting month days young')
  const retaining = await startNode(place, {
    env: { POSTHORN_RETENTION: 'sent-content=30d' },
    roles: ['jobs'],
  })
  await until('what is 30 days old to go', async () => (await kept()) === 'waiting days young')
  await retaining.stop()
  await startNode(place, { roles: ['jobs'] })
  await until('what is older than 72 hours to go', async () => (await kept()) === 'waiting young')
})
