// An attempt is one row: its events keep their ids and their order, and replies stay within bounds. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import { findEvents } from '../../src/store/events/events.ts'
import { type Conversation, readConversation, type StoredStep } from '../../src/store/sending/conversation.ts'
import type { Api } from '../support/api.ts'
import { makeFarServers } from '../support/far-servers.ts'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import type { Rule } from '../support/sink.ts'
import { Wire } from '../support/wire.ts'

const place = await makePlace({ after })
const far = await makeFarServers(place)
const node = await startNode(place, { env: { ...far.env, POSTHORN_RETRY_SCHEDULE: '1m' } })
const { db, clock } = node.foundation

async function setStage() {
  const caller = await node.createCaller()
  return { ...caller, inbox: await caller.api.createInbox() }
}

interface Event {
  id: string
  type: string
  at: string
  recipient: string | null
  attempt: number | null
  response: string | null
  remote: object | null
}

interface Page {
  events: Event[]
  nextCursor: string | null
}

async function readPage(api: Api, id: string, limit: number, cursor: string | null = null): Promise<Page> {
  const from = cursor === null ? '' : `&cursor=${cursor}`
  return await api.want<Page>(`/v1/submissions/${id}/events?limit=${limit}${from}`)
}

async function pageThrough(api: Api, id: string, limit: number, from: string | null = null) {
  const events: Event[] = []
  for (let cursor = from; ; ) {
    const page = await readPage(api, id, limit, cursor)
    events.push(...page.events)
    cursor = page.nextCursor
    if (cursor === null) return events
  }
}

const typesOf = (events: Event[]) => events.map(({ type }) => type).join(' ')

interface AttemptRow {
  id: string
  seq: number
  type: string
  recipient: string
  bytes: number
  stored: StoredStep[] | null
  conversation: Conversation | null
}

async function readRows(submissionId: string, from = db): Promise<AttemptRow[]> {
  const rows = await from.query<AttemptRow>(
    `select id, seq, type, recipient, octet_length(conversation::text) as bytes, conversation as stored from event
    where submission_id = $1 order by seq`,
    [submissionId],
  )
  return rows.map((row) => ({ ...row, conversation: readConversation(row.stored) }))
}

const commandsOf = ({ conversation }: AttemptRow) =>
  conversation!.steps.map(({ command, code }) => `${command} ${code}`)

/** Rewrites the submission's only attempt as the previous release stored it: one row for each event. */
async function makeFormer(submissionId: string): Promise<void> {
  await db.query(
    `insert into event (submission_id, seq, id, organization_id, type, recipient, at, attempt, remote)
    select e.submission_id, x.seq, x.id, e.organization_id, x.type, e.recipient, x.at, x.attempt, x.remote
    from event e cross join lateral (values
      (1, $2::uuid, 'queued', e.queued_at, null::integer, null::jsonb),
      (2, $3::uuid, 'attempted', e.began_at, e.attempt, e.remote)
    ) x(seq, id, type, at, attempt, remote)
    where e.submission_id = $1 and e.seq = 3`,
    [submissionId, randomUUID(), randomUUID()],
  )
  await db.query(
    'update event set queued_at = null, began_at = null, conversation = null where submission_id = $1',
    [submissionId],
  )
}

test('an attempt’s events keep their ids and cursors, in one row or in the former three', async (t) => {
  const rule: Rule = ({ stage }) => (stage === 'rcpt' ? '450 4.2.1 not now' : null)
  const { domain, sink } = await far.start(t, { rule })
  const { api, inbox } = await setStage()
  const { submission } = await send(api, inbox, [`someone@${domain}`])
  await untilStates(api, submission.id, 'deferred')
  const made = await pageThrough(api, submission.id, 100)
  assert.equal(typesOf(made), 'accepted queued attempted deferred')
  assert.equal(new Set(made.map(({ id }) => id)).size, 4)
  assert.deepEqual(
    made.map(({ attempt, response, remote }) => [attempt, response, remote !== null]),
    [
      [null, null, false],
      [null, null, false],
      [1, null, true],
      [1, '450 4.2.1 not now', true],
    ],
  )
  assert.deepEqual(
    (await readRows(submission.id)).map(({ id, seq, type }) => ({ id, seq, type })),
    [{ id: made[3]!.id, seq: 3, type: 'deferred' }],
  )
  await makeFormer(submission.id)
  const former = await pageThrough(api, submission.id, 100)
  assert.deepEqual([typesOf(former), former[3]!.id], [typesOf(made), made[3]!.id])
  const cursors: (string | null)[] = []
  for (const limit of [1, 2, 3]) cursors.push((await readPage(api, submission.id, limit)).nextCursor)

  sink.rule = () => null
  clock.advance(70_000)
  await untilStates(api, submission.id, 'delivered')
  const all = await pageThrough(api, submission.id, 100)
  assert.equal(typesOf(all), 'accepted queued attempted deferred attempted delivered')
  assert.deepEqual(all.slice(0, 4), former)
  for (const limit of [1, 2, 3, 4, 5]) assert.deepEqual(await pageThrough(api, submission.id, limit), all)
  for (const [index, cursor] of cursors.entries())
    assert.deepEqual(await pageThrough(api, submission.id, 2, cursor), all.slice(index + 1))
})

test('each event that the outbox names is found by its id', async (t) => {
  const { domain } = await far.start(t)
  const { api, inbox, organizationId } = await setStage()
  const { submission } = await send(api, inbox, [`one@${domain}`, `two@${domain}`])
  await untilStates(api, submission.id, 'delivered', 'delivered')
  const items = await db.query<{ id: string; event: number }>(
    `select i->>'id' as id, (i->>'event')::integer as event from outbox o cross join jsonb_array_elements(o.items) i
    where i->>'type' = 'message.delivered' and o.organization_id = $1 order by 2`,
    [organizationId],
  )
  const found = await findEvents(
    db,
    items.map(({ event }) => ({ submission: submission.id, seq: event })),
  )
  assert.deepEqual(
    found.map(({ id, seq, type }) => ({ id, seq, type })).sort((a, b) => a.seq - b.seq),
    items.map(({ id, event }) => ({ id, seq: event, type: 'delivered' })),
  )
  const events = await pageThrough(api, submission.id, 3)
  assert.equal(typesOf(events), `accepted${' queued attempted delivered'.repeat(2)}`)
  assert.deepEqual(
    events.filter(({ type }) => type === 'delivered').map(({ id }) => id),
    items.map(({ id }) => id),
  )
})

test('each recipient has its own RCPT line, and the first also shows how the connection was opened', async (t) => {
  for (const extensions of [['PIPELINING', '8BITMIME'], ['PIPELINING', 'CHUNKING'], []]) {
    const { domain, sink } = await far.start(t, {
      extensions,
      rule: ({ stage, command }) => {
        if (stage === 'rcpt' && command.includes('<gone@')) return '550 5.1.1 no such user'
        return stage === 'mail' ? '250 2.1.0 fine' : null
      },
    })
    const { api, inbox } = await setStage()
    const [one, gone, two] = ['one', 'gone', 'two'].map((name) => `${name}@${domain}`)
    const { submission } = await send(api, inbox, [one!, gone!, two!])
    await untilStates(api, submission.id, 'delivered', 'bounced', 'delivered')
    assert.equal(sink.connections, 1)
    const [first, second, third] = (await readRows(submission.id)).sort(
      (a, b) => Number(b.recipient === one) - Number(a.recipient === one),
    )
    const end = extensions.includes('CHUNKING') ? ['BDAT 250'] : ['DATA 354', '. 250']
    assert.deepEqual(
      [first!.conversation!.isReused, commandsOf(first!)],
      [false, ['connect 220', 'EHLO 250', 'MAIL 250', 'RCPT 250', ...end]],
    )
    const rows = [second!, third!]
    const refused = rows.find(({ recipient }) => recipient === gone)!
    const taken = rows.find(({ recipient }) => recipient === two)!
    const { text, code } = refused.conversation!.steps.find(({ command }) => command === 'RCPT')!
    assert.deepEqual([code, text], [550, 'no such user'])
    assert.deepEqual([refused.conversation!.isReused, taken.conversation!.isReused], [true, true])
    for (const { conversation } of [first!, refused, taken]) {
      const times = conversation!.steps
        .filter(({ command }) => !/connect|EHLO/.test(command))
        .map(({ atMs }) => atMs)
      assert.deepEqual(
        times,
        times.toSorted((a, b) => a - b),
      )
      assert.ok(times.every((ms) => ms >= -1 && ms < 60_000))
    }
    assert.ok(
      commandsOf(taken)
        .join(' ')
        .endsWith(['MAIL 250', 'RCPT 250', ...end].join(' ')),
    )
  }
})

type Answer = (command: string) => string | Buffer

/** Starts a peer that answers each command with these bytes. It hangs up after the end of a message, `.`. */
async function startPeer(
  t: TestContext,
  at: { host: string; port: number },
  answer: Answer,
): Promise<number> {
  const server = createServer(async (socket) => {
    const wire = new Wire(socket)
    await wire.write(answer('connect'))
    for (let line = await wire.line(); line !== null; line = await wire.line()) {
      await wire.write(answer(line))
      if (line !== 'DATA') continue
      if (await wire.message()) await wire.write(answer('.'))
      break
    }
    socket.destroy()
  })
  server.listen(at)
  await once(server, 'listening')
  t.after(() => server.close())
  return (server.address() as { port: number }).port
}

/** Returns the domain whose mail goes to such a peer. */
async function startFarPeer(t: TestContext, answer: Answer): Promise<string> {
  const { domain, host } = far.name()
  await startPeer(t, { host, port: far.port }, answer)
  return domain
}

const codes: Record<string, number> = { connect: 220, DATA: 354, QUIT: 221 }

/** A reply of 100 lines of 500 bytes. */
function flood(code: number, line: Buffer): Buffer {
  const lines = Array.from({ length: 100 }, (_, i) => [
    Buffer.from(`${code}${i === 99 ? ' ' : '-'}`),
    ...[line, Buffer.from('\r\n')],
  ])
  return Buffer.concat(lines.flat())
}

test('a hostile peer’s replies are kept within 2 KiB, inert, and with all that decides', async (t) => {
  const words: Buffer[] = [
    Buffer.alloc(500, 'x'),
    Buffer.from('"\\'.repeat(250)),
    Buffer.from('😀'.repeat(125)),
    Buffer.concat([Buffer.from('nul \0 esc \x1b]0;title\x07 bell'), Buffer.alloc(470, 0)]),
    Buffer.alloc(500, 0xff),
    Buffer.from('é'.repeat(249)).subarray(1),
  ]
  let line = words[0]!
  const domain = await startFarPeer(t, (command) => flood(codes[command.split(/[ :]/)[0]!] ?? 250, line))
  const { api, inbox } = await setStage()
  for (line of words) {
    const { submission } = await send(api, inbox, [`someone@${domain}`])
    await untilStates(api, submission.id, 'delivered')
    const [row] = await readRows(submission.id)
    assert.ok(row!.bytes > 1000 && row!.bytes <= 2048, `${row!.bytes} bytes`)
    assert.deepEqual(commandsOf(row!), [
      ...['connect 220', 'EHLO 250', 'MAIL 250', 'RCPT 250', 'DATA 354', '. 250'],
    ])
    for (const { text } of row!.conversation!.steps) {
      assert.match(text, /^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*…$/)
      assert.ok(text.isWellFormed())
    }
  }
})

// A node of its own: it authenticates at a relay.
test('neither our AUTH lines nor the replies to them are kept', async (t) => {
  const replies: Record<string, string> = {
    connect: '220 relay.test\r\n',
    EHLO: '250-relay.test\r\n250 AUTH LOGIN\r\n',
    AUTH: '334 VXNlcm5hbWU6\r\n',
    [Buffer.from('posthorn').toString('base64')]: '334 UGFzc3dvcmQ6\r\n',
    [Buffer.from('secret').toString('base64')]: '235 2.7.0 welcome, posthorn\r\n',
    DATA: '354 go ahead\r\n',
  }
  const answer = (command: string) => replies[command.split(' ')[0]!] ?? '250 2.0.0 ok\r\n'
  const port = await startPeer(t, { host: '127.0.0.1', port: 0 }, answer)
  const relayUrl = `smtp://posthorn:secret@127.0.0.1:${port}`
  const env = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: relayUrl }
  const own = await makePlace(t)
  const { foundation, createCaller } = await startNode(own, { env })
  const { api } = await createCaller()
  const { submission } = await send(api, await api.createInbox(), ['someone@far.test'])
  await untilStates(api, submission.id, 'delivered')
  const [row] = await readRows(submission.id, foundation.db)
  assert.deepEqual(commandsOf(row!), [
    ...['connect 220', 'EHLO 250', 'AUTH 235', 'MAIL 250', 'RCPT 250', 'DATA 354', '. 250'],
  ])
  assert.deepEqual(row!.conversation!.steps.find(({ command }) => command === 'AUTH')!.text, '')
  assert.doesNotMatch(JSON.stringify(row!.stored), /cG9zdGhvcm4|c2VjcmV0|welcome|VXNlcm/)
})

test('a reply about another customer’s earlier transaction is not shown', async (t) => {
  let sender = ''
  const domain = await startFarPeer(t, (command) => {
    if (command.startsWith('RCPT TO:<refused')) return '550 5.1.1 no such user\r\n'
    if (command.startsWith('MAIL')) sender = command
    if (command.startsWith('RSET')) return `250 2.0.0 dropped ${sender}\r\n`
    return `${codes[command.split(/[ :]/)[0]!] ?? 250} ok\r\n`
  })
  const [other, { api, inbox }] = [await setStage(), await setStage()]
  const refused = await send(other.api, other.inbox, [`refused@${domain}`])
  await untilStates(other.api, refused.submission.id, 'bounced')
  const { submission } = await send(api, inbox, [`someone@${domain}`])
  await untilStates(api, submission.id, 'delivered')
  const [row] = await readRows(submission.id)
  assert.deepEqual(
    [row!.conversation!.isReused, ...commandsOf(row!)],
    [true, 'RSET 250', 'MAIL 250', 'RCPT 250', 'DATA 354', '. 250'],
  )
  assert.doesNotMatch(JSON.stringify(row!.stored), /dropped|bounce/)
})
