// The database goes away and comes back: promises are kept, none are made meanwhile, no restart is needed.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { globSync, readdirSync, readFileSync, readlinkSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { pauseQueue } from '../../src/flow/delivering/end-deliveries.ts'
import { Db, DbFault } from '../../src/postgres/db.ts'
import type { Acceptance, Answer, Api, Inbox, Refusal } from '../support/api.ts'
import { proveDomain } from '../support/customer-domain.ts'
import { DnsServer } from '../support/dns-server.ts'
import { Door } from '../support/door.ts'
import { ExternalServer } from '../support/external-server.ts'
import { makePlace, type Place, send, startNode, type TestNode, untilStates } from '../support/node.ts'
import { createCaller, startPosthorn } from '../support/service.ts'
import { startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

/** Ends every other connection to the database as a restart does: with a final message, then the end. */
async function terminateAll({ connection }: Place): Promise<number> {
  const client = new pg.Client(connection)
  await client.connect()
  const { rowCount } = await client.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
  )
  await client.end()
  return rowCount ?? 0
}

test('check 87: a connection lost in an idle transaction fails only that transaction', async (t) => {
  const place = await makePlace(t)
  const db = new Db({ connection: place.connection })
  place.after(() => db.close())
  const work = db.transaction(async (tx) => {
    await tx.query('select 1')
    await terminateAll(place)
    await tx.query('select 2')
  })
  await assert.rejects(work, (error) => error instanceof DbFault && error.kind === 'lost')
  assert.deepEqual(await db.query('select 3 as three'), [{ three: 3 }])
})

test('check 87: a node goes on after all its connections are ended', async (t) => {
  const place = await makePlace(t)
  const sink = await startSink(t)
  const env = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url }
  const node = await startNode(place, { env })
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  for (let round = 0; round < 5; round++) {
    assert.ok((await terminateAll(place)) > 0)
    const key = randomUUID()
    const accepted = await until('an acceptance', async () => {
      return await send(api, inbox, ['someone@far.test'], { key }).catch(() => null)
    })
    await untilStates(api, accepted.submission.id, 'delivered')
    assert.equal(sink.copiesOf(accepted.message.internetMessageId).length, 1)
  }
})

async function readyz({ app }: TestNode): Promise<{ code: number; status: string; reason?: string }> {
  const { host, port } = app.listening.operator
  const response = await fetch(`http://${host}:${port}/readyz`)
  return { code: response.status, ...((await response.json()) as { status: string; reason?: string }) }
}

test('/readyz is 503 while the database accepts no writes, and 200 again afterwards', async (t) => {
  const place = await makePlace(t)
  const node = await startNode(place, { roles: ['jobs'] })
  const setReadOnly = async (value: 'on' | 'off') => {
    const client = new pg.Client(place.connection)
    await client.connect()
    const { rows } = await client.query('select current_database() as name')
    await client.query('set default_transaction_read_only = off')
    await client.query(`alter database ${rows[0].name} set default_transaction_read_only = ${value}`)
    await client.end()
    await terminateAll(place)
  }
  assert.equal((await readyz(node)).code, 200)
  await setReadOnly('on')
  const answer = await until('the node not to be ready', async () => {
    const found = await readyz(node)
    return found.reason?.includes('read-only') ? found : null
  })
  assert.deepEqual([answer.code, answer.status], [503, 'unavailable'])
  await setReadOnly('off')
  await until('the node to be ready', async () => (await readyz(node)).code === 200)
})

// A server of its own: synchronous commit is a setting of all its databases.
test('/readyz is 503 while commits wait for an absent standby, however often it is requested', async (t) => {
  const server = await ExternalServer.make(t)
  const env = { POSTHORN_DATABASE_URL: await server.start() }
  const node = await startNode(await makePlace(t), { roles: ['jobs'], env })
  const setStandby = async (name: string) => {
    await server.ask(`alter system set synchronous_standby_names = '${name}'`)
    await server.ask('select pg_reload_conf()')
  }
  await setStandby('away')
  await until('the node not to be ready', async () => (await readyz(node)).reason?.includes('standby'))
  const waiting = async () => {
    const [row] = await server.ask(
      `select count(*)::int from pg_stat_activity where wait_event = 'SyncRep' and query like '%pg_logical_emit_message%'`,
    )
    return row!['count']
  }
  const asked = Promise.all(Array.from({ length: 20 }, () => readyz(node)))
  await until('a commit to wait', async () => (await waiting()) === 1)
  const answers = await asked
  assert.deepEqual(
    new Set(answers.map(({ code, status }) => `${code} ${status}`)),
    new Set(['503 unavailable']),
  )
  // Clients that disconnected leave no waiting commit behind.
  await until('no commit to wait', async () => (await waiting()) === 0)
  await setStandby('')
  await until('the node to be ready', async () => (await readyz(node)).code === 200)
})

test('check 87: while the database is unreachable there is 503 and 451, and afterwards everything goes on', async (t) => {
  const place = await makePlace(t)
  const sink = await startSink(t)
  const door = new Door(place)
  await door.open()
  place.after(() => door.shut())
  // If the node loses its lease during a transfer, the mail may have been taken. The node retries soon.
  const env = {
    POSTHORN_DELIVERY: 'relay',
    POSTHORN_RELAY_URL: sink.url,
    POSTHORN_DATABASE_URL: door.url,
    POSTHORN_RETRY_SCHEDULE: '1s',
  }
  const node = await startNode(place, { env })
  const { api } = await node.createCaller()
  const inbox = await api.createInbox('steady')
  const raw = (name: string) =>
    Buffer.from(`From: a@far.test\r\nMessage-ID: <${name}@far.test>\r\n\r\nHello.\r\n`)
  const receive = (name: string) =>
    sendMail(node.smtp, { from: 'a@far.test', to: 'steady@inbox.test', raw: raw(name) })
  const ask = (key: string) =>
    api.call<Acceptance & Refusal>(`/v1/inboxes/${inbox.id}/messages`, {
      method: 'POST',
      idempotencyKey: key,
      body: { to: [{ email: 'b@far.test' }], subject: 'Test', text: 'Hello.' },
    })
  assert.equal((await receive('before')).outcome, 'accepted')
  // The far server delays its reply to a message until the database is gone. The result is recorded after the recovery.
  let release = () => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  let isOnWire = false
  sink.rule = async ({ stage }) => {
    if (stage !== 'message') return null
    isOnWire = true
    await held
    return null
  }
  const onWire = await send(api, inbox, ['wire@far.test'])
  await until('the message to be on the wire', () => isOnWire)

  await door.shut()
  release()
  for (const answer of await askEverything({ api, inbox }, 'shut')) assertUnavailable(answer)
  for (let i = 0; i < 3; i++) {
    const refused = await ask(`refused-${i}`)
    assert.deepEqual([refused.status, refused.body.error], [503, 'unavailable'])
    assert.ok(refused.headers.get('retry-after'))
    const { outcome, reply } = await receive(`refused-${i}`)
    assert.deepEqual([outcome, reply.slice(0, 3)], ['refused', '451'])
  }
  await door.open()
  const accepted = await until('an acceptance', async () => {
    const answer = await ask('after-outage')
    return answer.status === 202 ? answer.body : null
  })
  await until('mail to be taken', async () => (await receive('after')).outcome === 'accepted')
  await untilStates(api, accepted.submission.id, 'delivered')
  await untilStates(api, onWire.submission.id, 'delivered')
  assert.ok(sink.copiesOf(onWire.message.internetMessageId).length <= 2)
  const ids = await until('both mails to be filed', async () => {
    const found = (await api.exported(inbox.id)).filter(({ direction }) => direction === 'inbound')
    return found.length >= 2 ? found.map(({ internetMessageId }) => internetMessageId) : null
  })
  assert.deepEqual(ids, ['<before@far.test>', '<after@far.test>'])
  await until('requests and mail to go on', async () => {
    await ask(randomUUID())
    await receive(randomUUID())
    const lasting = outagesOf(node).filter(({ lines }) => lines.at(-1) !== 'available again')
    return !lasting.some(({ work }) => ['requests', 'receiving'].includes(work))
  })
  await until('all other work to go on', () => {
    const lasting = outagesOf(node).filter(({ lines }) => lines.at(-1) !== 'available again')
    return lasting.length === 0
  })
  const outages = outagesOf(node)
  for (const { work, lines } of outages) {
    // On a busy machine, connecting may exceed its time limit once more.
    assert.ok(lines.length <= 4, `${work}: ${lines.length}`)
    for (const [index, line] of lines.entries())
      assert.equal(line, index % 2 === 0 ? 'unavailable; further failures are counted' : 'available again')
  }
  for (const work of ['requests', 'receiving'])
    assert.ok(
      outages.some((outage) => outage.work === work),
      work,
    )
  const others = linesOf(node).filter(({ level, work }) => level >= 40 && work === undefined)
  assert.ok(others.length <= 10, JSON.stringify(others))
})

interface LogLine {
  level: number
  msg: string
  work?: string
  reason?: string
}

const linesOf = (node: TestNode): LogLine[] =>
  node
    .log()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

/** The log entries about the outage, by kind of work. */
function outagesOf(node: TestNode): { work: string; lines: string[] }[] {
  const lines = linesOf(node).filter(({ work }) => work !== undefined)
  for (const { level, reason } of lines) assert.ok(level < 40 || reason)
  return [...Map.groupBy(lines, ({ work }) => work!)].map(([work, found]) => ({
    work,
    lines: found.map(({ msg }) => msg),
  }))
}

for (const [table, question] of [
  ['dkim_key', 'from dkim_key where domain_id = any'],
  ['send_content', 'left join send_content'],
] as const)
  test(`check 87: an unreadable ${table} costs a message no attempt`, async (t) => {
    const place = await makePlace(t)
    const sink = await startSink(t)
    const dns = await DnsServer.start()
    place.after(() => dns.close())
    const env = {
      POSTHORN_DELIVERY: 'relay',
      POSTHORN_RELAY_URL: sink.url,
      POSTHORN_DNS: dns.address,
    }
    // Not the accepting node, because it has the mail in memory.
    const node = await startNode(place, { env, roles: ['delivery'] })
    const { api } = await (await startNode(place, { env, roles: ['api'] })).createCaller()
    await proveDomain(api, dns, 'sender.test', ['outbound'])
    const body = { from: { email: 'a@sender.test' }, to: [{ email: 'b@far.test' }], subject: 'T', text: 'T' }
    const post = () =>
      api.want<{ id: string }>('/v1/send', {
        method: 'POST',
        body,
        status: 202,
        idempotencyKey: randomUUID(),
      })
    await untilStates(api, (await post()).id, 'delivered')
    await pauseQueue(node.foundation, '@relay', 'paused')
    const { id } = await post()
    const [holder, killer] = [new pg.Client(place.connection), new pg.Client(place.connection)]
    for (const client of [holder, killer]) {
      await client.connect()
      place.after(() => client.end())
    }
    // Keys are cached for up to one second.
    node.foundation.clock.advance(1_000)
    await holder.query(`begin; lock table ${table} in access exclusive mode`)
    await pauseQueue(node.foundation, '@relay', 'running')
    await until('the look-up to be broken off', async () => {
      const { rowCount } = await killer.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
          and wait_event_type = 'Lock' and query like '%${question}%'`,
      )
      return (rowCount ?? 0) > 0
    })
    await holder.query('commit')
    await untilStates(api, id, 'delivered')
    type Events = { events: { type: string; attempt: number | null }[] }
    const { events } = await api.want<Events>(`/v1/submissions/${id}/events`)
    assert.deepEqual(
      events.map(({ type, attempt }) => [type, attempt]),
      [
        ['accepted', null],
        ['queued', null],
        ['attempted', 1],
        ['delivered', 1],
      ],
    )
  })

/** A large mail that waits in a paused queue, and the path of the blob folder. */
async function holdLargeMail(t: TestContext) {
  const place = await makePlace(t)
  const sink = await startSink(t)
  const relay = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url }
  const env = { ...relay, POSTHORN_RETRY_SCHEDULE: '1m' }
  const node = await startNode(place, { env })
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  await untilStates(api, (await send(api, inbox, ['first@far.test'])).submission.id, 'delivered')
  await pauseQueue(node.foundation, '@relay', 'paused')
  const content = Buffer.alloc(300_000, 'Large.').toString('base64')
  const { submission } = await api.want<Acceptance>(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    status: 202,
    idempotencyKey: randomUUID(),
    body: {
      to: [{ email: 'b@far.test' }],
      subject: 'Test',
      text: 'Hello.',
      attachments: [{ filename: 'large.txt', contentType: 'text/plain', content }],
    },
  })
  const typesOf = async () => {
    const { events } = await api.want<{ events: { type: string }[] }>(
      `/v1/submissions/${submission.id}/events`,
    )
    return events.map(({ type }) => type)
  }
  return { node, api, submission, typesOf, blobs: join(place.folder, 'blobs') }
}

test('hostile 5: a message whose attachment’s disk is missing waits by the schedule, shows why, and finally leaves', async (t) => {
  const { node, api, submission, typesOf, blobs } = await holdLargeMail(t)
  renameSync(blobs, `${blobs}.away`)
  await pauseQueue(node.foundation, '@relay', 'running')
  const deferred = Array<string>(6).fill('deferred')
  for (const count of deferred.keys()) {
    await until(`attempt ${count + 1}`, async () => (await typesOf()).length === count + 3)
    if (count < 5) node.foundation.clock.advance(70_000)
  }
  await untilStates(api, submission.id, 'deferred')
  renameSync(`${blobs}.away`, blobs)
  node.foundation.clock.advance(70_000)
  await untilStates(api, submission.id, 'delivered')
  assert.deepEqual(await typesOf(), ['accepted', 'queued', ...deferred, 'attempted', 'delivered'])
})

test('hostile 5: temporary faults of ours do not count towards the five lasting ones', async (t) => {
  const { node, api, submission, typesOf, blobs } = await holdLargeMail(t)
  const { db, clock } = node.foundation
  renameSync(blobs, `${blobs}.away`)
  await pauseQueue(node.foundation, '@relay', 'running')
  for (let attempt = 1; attempt <= 8; attempt++) {
    await until(`attempt ${attempt}`, async () => (await typesOf()).length === attempt + 2)
    await untilStates(api, submission.id, 'deferred')
    if (attempt === 4) {
      renameSync(`${blobs}.away`, blobs)
      for (const { blob } of await db.query<{ blob: string }>('select blob from raw where blob is not null'))
        await node.foundation.blobs.delete(blob)
    }
    clock.advance(70_000)
  }
  await untilStates(api, submission.id, 'failed')
  assert.equal((await typesOf()).length, 9 + 2)
})

/** Reads, writes and sends, with idempotency keys that begin with `name`. */
function askEverything(
  { api, inbox }: { api: Api; inbox: Inbox },
  name: string,
): Promise<(Answer<Refusal> & { path: string })[]> {
  const post = (path: string, body: object, key: string) => ({
    path,
    call: { method: 'POST', body, idempotencyKey: `${name}-${key}` },
  })
  const mail = { to: [{ email: 'b@far.test' }], subject: 'Test', text: 'Hello.' }
  const requests = [
    ...['/v1/me', '/v1/inboxes', `/v1/inboxes/${inbox.id}/export`, '/v1/submissions', '/v1/suppressions'],
    ...['/v1/complaints', '/v1/domains', '/v1/webhooks', '/v1/metrics/delivery', '/v1/events'],
  ].map((path) => ({ path, call: {} }))
  const writes = [
    post(`/v1/inboxes/${inbox.id}/messages`, mail, 'message'),
    post('/v1/send', { ...mail, from: { email: 'a@unproved.example' } }, 'send'),
    post('/v1/threads/thr_000000000000000000000000/replies', replyToNothing, 'reply'),
    post('/v1/inboxes', { displayName: name }, 'inbox'),
    post('/v1/suppressions', { email: `${name}@far.test` }, 'suppression'),
    post('/v1/domains', { domain: `${name}.example` }, 'domain'),
    { path: '/v1/inboxes/inb_000000000000000000000000', call: { method: 'DELETE' } },
    { path: '/v1/messages/msg_000000000000000000000000', call: { method: 'DELETE' } },
  ]
  return Promise.all(
    [...requests, ...writes].map(async ({ path, call }) => ({ path, ...(await api.call(path, call)) })),
  )
}

const replyToNothing = { targetMessageId: 'msg_000000000000000000000000', text: 'T' }

function assertUnavailable({ path, status, headers, body }: Answer<Refusal> & { path: string }): void {
  assert.deepEqual([status, body.error], [503, 'unavailable'], path)
  assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/, path)
}

/** The number of open files below the folder in this process, if the system reports it. */
function openFiles(folder: string): number {
  if (process.platform !== 'linux') return 0
  const targets = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      return '' // the folder itself, or closed meanwhile
    }
  })
  return targets.filter((target) => target.startsWith(folder)).length
}

/** After the recovery, each send requested meanwhile exists once or not at all, and its key works. */
async function assertWhole({ api, inbox }: { api: Api; inbox: Inbox }, name: string): Promise<void> {
  const body = { to: [{ email: 'b@far.test' }], subject: 'Test', text: 'Hello.' }
  const path = `/v1/inboxes/${inbox.id}/messages`
  const call = { method: 'POST', body, idempotencyKey: `${name}-message` }
  await until('an acceptance', async () => (await api.call(path, call)).status === 202)
  const { message } = await api.want<Acceptance>(path, { ...call, status: 202 })
  const open = { method: 'POST', body: { displayName: name }, idempotencyKey: `${name}-inbox`, status: 201 }
  const opened = await api.want<Inbox>('/v1/inboxes', open)
  const messages = await api.exported(inbox.id)
  assert.equal(messages.filter(({ id }) => id === message.id).length, 1)
  const { inboxes } = await api.want<{ inboxes: (Inbox & { displayName: string })[] }>('/v1/inboxes')
  assert.deepEqual(
    inboxes.filter(({ displayName }) => displayName === name).map(({ id }) => id),
    [opened.id],
  )
}

test('check 87: while the database is silent every request is 503 in bounded time, and later all goes on', async (t) => {
  const place = await makePlace(t)
  const door = new Door(place)
  await door.open()
  place.after(() => door.shut())
  const node = await startNode(place, { env: { POSTHORN_DATABASE_URL: door.url } })
  const { api } = await node.createCaller()
  const stage = { api, inbox: await api.createInbox() }
  const raw = Buffer.concat([Buffer.from('Subject: Large\r\n\r\n'), Buffer.alloc(300_000, 'Large.\r\n')])
  await sendMail(node.smtp, { from: 'a@far.test', to: stage.inbox.address, raw })
  const [large] = await until('the mail', async () => {
    const messages = await api.exported(stage.inbox.id)
    return messages.length > 0 ? messages : null
  })
  const warnings: string[] = []
  const note = ({ message }: Error) => void warnings.push(message)
  process.on('warning', note)
  t.after(() => process.off('warning', note))
  door.hold()
  place.after(() => door.release())
  // More requests than connections. The client's own time limit is 30 s.
  const source = api.call<Refusal>(`/v1/messages/${large!.id}/source`)
  const answers = await Promise.all(['silent', 'silent-too'].map((name) => askEverything(stage, name)))
  for (const answer of answers.flat()) assertUnavailable(answer)
  assertUnavailable({ path: 'source', ...(await source) })
  door.release()
  await assertWhole(stage, 'silent')
  await assertWhole(stage, 'silent-too')
  await until('what was opened too late to be closed', () => openFiles(join(place.folder, 'blobs')) === 0)
  assert.deepEqual(warnings, [], 'closed, not left to the garbage collection')
  const waits = await node.foundation.db.query(
    `select 1 from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'
      and state_change < now() - interval '10 s'`,
  )
  assert.deepEqual(waits, [])
})

test('check 87: while every connection waits for a lock there is 503 in bounded time, and later all goes on', async (t) => {
  const place = await makePlace(t)
  const node = await startNode(place, { roles: ['api'] })
  const { api } = await node.createCaller()
  const stage = { api, inbox: await api.createInbox() }
  const holder = new pg.Client(place.connection)
  await holder.connect()
  place.after(() => holder.end())
  await holder.query('begin; lock table organization in access exclusive mode')
  // Keys are cached for up to one second, so each request must query the database.
  node.foundation.clock.advance(1_000)
  const answers = await Promise.all(['locked', 'locked-too'].map((name) => askEverything(stage, name)))
  for (const answer of answers.flat()) assertUnavailable(answer)
  await holder.query('commit')
  await assertWhole(stage, 'locked')
  await assertWhole(stage, 'locked-too')
})

test('check 87: while PostgreSQL is stopped or killed every request is 503, and the service recovers without a restart', async (t) => {
  if (process.platform !== 'linux' || process.env['POSTHORN_TEST_DATABASE_URL'])
    return t.skip('only an embedded PostgreSQL on Linux is stopped')
  const posthorn = await startPosthorn(t)
  const { api } = await createCaller(posthorn)
  const stage = { api, inbox: await api.createInbox() }
  const postgres = processesOf(posthorn.folder)
  assert.ok(postgres.length > 3)
  t.after(() => signalAll(postgres, 'SIGCONT'))
  signalAll(postgres, 'SIGSTOP')
  for (const answer of await askEverything(stage, 'stopped')) assertUnavailable(answer)
  signalAll(postgres, 'SIGCONT')
  await assertWhole(stage, 'stopped')
  assert.ok(posthorn.killPostgres())
  const killed = await askEverything(stage, 'killed')
  for (const answer of killed) if (answer.status >= 500) assertUnavailable(answer)
  await assertWhole(stage, 'killed')
})

/** The postmaster of the embedded PostgreSQL and its children. */
function processesOf(folder: string): number[] {
  const [file] = globSync('**/postmaster.pid', { cwd: folder })
  const postmaster = Number(readFileSync(join(folder, file!), 'utf8').split('\n')[0])
  const children = readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false
    try {
      return readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1]?.split(' ')[1] === String(postmaster)
    } catch {
      return false // it ended meanwhile
    }
  })
  return [postmaster, ...children.map(Number)]
}

function signalAll(pids: number[], signal: NodeJS.Signals): void {
  for (const pid of pids)
    try {
      process.kill(pid, signal)
    } catch {
      // it has ended: backends come and go
    }
}
