// The live stream: complete and in order, resumable after a restart and at another node, bounded for slow readers.
import assert from 'node:assert/strict'
import { randomUUIDv7 } from 'node:crypto'
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { meters } from '../../src/base/meters.ts'
import { endKey } from '../../src/flow/accounts/key.ts'
import { changeOrganizationStatus } from '../../src/flow/accounts/organization.ts'
import { formatEventId, parseEventId } from '../../src/http/stream/event-reader.ts'
import { announce, type OutboxItem } from '../../src/store/events/outbox.ts'
import { addKey } from '../support/agent-key.ts'
import { announceAsNode } from '../support/announce.ts'
import { type EventSource, openStream, type StreamedEvent } from '../support/event-source.ts'
import { untilLocked } from '../support/lock-waits.ts'
import { makePlace, send, startNode, type TestCaller, type TestNode } from '../support/node.ts'
import { until } from '../support/until.ts'

const env = { POSTHORN_DELIVERY: 'capture' }
const day = 86_400_000

function baseOf({ app }: TestNode): string {
  return `http://${app.listening.http!.host}:${app.listening.http!.port}`
}

/** Announces suppressions and returns their ids. */
async function tell(
  caller: TestCaller,
  count = 1,
  { padding = 0, at: { foundation } = node } = {},
): Promise<string[]> {
  const { db, clock } = foundation
  const items: OutboxItem[] = Array.from({ length: count }, () => ({
    id: randomUUIDv7(),
    type: 'suppression.created',
    content: { suppression: 'x'.repeat(padding) },
  }))
  await announceAsNode(db, { organizationId: caller.organizationId, at: clock.now(), items })
  return items.map(({ id }) => id)
}

const idsOf = ({ events }: EventSource) => events.map(({ id }) => id!.slice(0, 36))

const place = await makePlace({ after })
const node = await startNode(place, { env, roles: ['api'] })

async function setStage(t: TestContext) {
  const caller = await node.createCaller()
  return { caller, open: (last?: string) => openStream(t, baseOf(node), caller.secret, last) }
}

test('stream: events arrive as they happen, in order, with a webhook’s body', async (t) => {
  const { caller, open } = await setStage(t)
  const earlier = await open()
  await tell(caller)
  // A running transaction on the server delays events committed after it began. They reach all readers connected by then.
  await until('what came before', () => earlier.events.length === 1)
  const stream = await open()
  assert.equal(stream.status, 200)
  assert.equal(stream.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  assert.equal(stream.headers.get('cache-control'), 'no-store')
  assert.ok(stream.headers.get('x-request-id') && stream.headers.get('ratelimit'))
  const other = await node.createCaller()
  await tell(other)
  const ids = [...(await tell(caller, 3)), ...(await tell(caller, 20))]
  await until('the events', () => stream.events.length === ids.length)
  assert.deepEqual(idsOf(stream), ids)
  const { type, body } = stream.events[0]!
  assert.equal(type, 'suppression.created')
  assert.deepEqual([body.type, body.data], ['suppression.created', { suppression: '' }])
})

test('stream: readers that come and go under load miss no event and get none twice', async (t) => {
  const { caller, open } = await setStage(t)
  const steady = await open()
  const ids: string[] = []
  const resumed: { stream: EventSource; after: number }[] = []
  for (let n = 0; n < 30; n++) {
    ids.push(...(await tell(caller, 7)))
    if (n % 3 !== 2) continue
    await until('the steady one', () => steady.events.length >= ids.length - 7)
    const after = steady.events.length - 1
    resumed.push({ stream: await open(steady.events[after]!.id!), after })
  }
  await until('all', () => steady.events.length === ids.length)
  assert.deepEqual(idsOf(steady), ids)
  for (const { stream, after } of resumed) {
    await until('a resumed one', () => stream.events.length >= ids.length - after - 1)
    assert.deepEqual(idsOf(stream), ids.slice(after + 1))
  }
})

test('stream: overlapping transactions hide no event from a reader’s cursor', async (t) => {
  const { caller, open } = await setStage(t)
  const stream = await open()
  const { db, clock } = node.foundation
  const item = (): OutboxItem => ({ id: randomUUIDv7(), type: 'suppression.created', content: {} })
  const [early, late] = [item(), item()]
  const put = (one: OutboxItem) => ({ organizationId: caller.organizationId, at: clock.now(), items: [one] })
  await db.transaction(async (tx) => {
    await announce(tx, put(early))
    await db.transaction((inner) => announce(inner, put(late)))
    // The later event has committed first. It may not be shown until the earlier transaction has ended.
    await tell(await node.createCaller())
  })
  await until('both', () => stream.events.length === 2)
  assert.deepEqual(idsOf(stream), [early.id, late.id])
})

test('stream: a reader that does not read is paused, and later continues from its cursor', async (t) => {
  const { caller, open } = await setStage(t)
  const quick = await open()
  const socket = await openPaused(t, caller)
  const ids: string[] = []
  for (let n = 0; n < 40; n++) ids.push(...(await tell(caller, 10, { padding: 60_000 })))
  await until('the quick one', () => quick.events.length === ids.length)
  const before = socket.bytesRead
  assert.ok(before < 20e6, `${before} bytes were taken from a reader that does not read`)
  const seen: string[] = []
  let rest = ''
  socket.on('data', (chunk) => {
    const lines = `${rest}${chunk}`.split('\n')
    rest = lines.pop()!
    for (const line of lines) if (line.startsWith('id: ')) seen.push(line.slice(4, 40))
  })
  socket.resume()
  await until('everything', () => seen.length === ids.length)
  assert.deepEqual(seen, ids)
})

test('stream: late readers get the same events as current ones', async (t) => {
  const { caller, open } = await setStage(t)
  const start = await open()
  const ids = await tell(caller)
  await until('the first', () => start.events.length === 1)
  for (let n = 0; n < 12; n++) ids.push(...(await tell(caller, 5 + n, { padding: 20_000 })))
  const behind = await Promise.all(Array.from({ length: 20 }, () => open(start.events[0]!.id!)))
  ids.push(...(await tell(caller, 30)))
  for (const stream of behind) {
    await until('one that is behind', () => stream.events.length >= ids.length - 1)
    assert.deepEqual(idsOf(stream), ids.slice(1))
  }
  await until('the first one', () => start.events.length >= ids.length)
  assert.deepEqual(idsOf(start), ids)
})

async function countStatements(): Promise<number> {
  const { values } = await meters.querySeconds.get()
  return values.find(({ metricName }) => metricName?.endsWith('_count'))!.value
}

test('stream: a client that leaves before its stream begins costs no further queries', async (t) => {
  const { caller } = await setStage(t)
  const { db } = node.foundation
  const { host, port } = node.app.listening.http!
  await db.transaction(async (tx) => {
    await tx.query('lock table outbox in access exclusive mode')
    const socket = connect(port, host)
    socket.write(`GET /v1/events HTTP/1.1\r\nhost: a\r\nx-api-key: ${caller.secret}\r\n\r\n`)
    await untilLocked(db, { saying: 'from outbox' })
    socket.destroy()
    // Another request is answered once the server has noticed the disconnect.
    for (let n = 0; n < 3; n++) await fetch(`${baseOf(node)}/v1/profile`)
  })
  await until('nothing to be asked any more', async () => {
    const before = await countStatements()
    await pause(1_000)
    return (await countStatements()) - before < 3
  })
})

test('stream: events that 100 readers of an organization follow are read once', async (t) => {
  const { caller, open } = await setStage(t)
  const streams = await Promise.all(Array.from({ length: 100 }, () => open()))
  const before = await countStatements()
  const startedMs = performance.now()
  for (let n = 1; n <= 10; n++) {
    await tell(caller)
    await until('the event', () => streams.every(({ events }) => events.length === n))
  }
  // Every node polls for organizations with new rows and for live keys, however many readers there are.
  const asked = ((performance.now() - startedMs) / 100) * 1.5
  const count = (await countStatements()) - before
  assert.ok(count < 50 + asked, `${count} statements for 10 events of 100 readers`)
})

test('stream: an organization has at most 1,000 streams, however many open at once', async (t) => {
  const { caller } = await setStage(t)
  const url = `${baseOf(node)}/v1/events`
  const agent = new Agent({ maxSockets: 1_020 })
  t.after(() => agent.destroy())
  const statusOf = async () => {
    const request = get(url, { agent, headers: { 'x-api-key': caller.secret } }).on('error', () => {})
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    return response.resume().statusCode
  }
  const statuses = await Promise.all(Array.from({ length: 1_020 }, statusOf))
  assert.equal(statuses.filter((status) => status === 200).length, 1_000)
  assert.equal(statuses.filter((status) => status === 403).length, 20)
})

test('stream: a revoked key ends the stream of a reader that does not read', async (t) => {
  const { caller, open } = await setStage(t)
  const quick = await open()
  const socket = await openPaused(t, caller)
  let isCut = false
  socket.on('error', () => (isCut = true))
  for (let n = 0; n < 20; n++) await tell(caller, 10, { padding: 60_000 })
  await until('the quick one', () => quick.events.length === 200)
  await endKey(node.foundation, caller.keyId)
  // After the connection has closed, further bytes are answered with a reset.
  socket.write('GET / HTTP/1.1\r\nx-header: ')
  await until('it to be cut off', () => isCut || (socket.write('a') && isCut), { timeoutMs: 10_000 })
})

/** A reader that stops reading once its stream has begun. */
async function openPaused(t: TestContext, caller: TestCaller): Promise<Socket> {
  const { host, port } = node.app.listening.http!
  const socket = connect(port, host)
  t.after(() => void socket.destroy())
  socket.write(`GET /v1/events HTTP/1.1\r\nhost: a\r\nx-api-key: ${caller.secret}\r\n\r\n`)
  await until('it to begin', () => socket.bytesRead > 0 || socket.readableLength > 0)
  return socket.pause()
}

test('stream: a revoked key or a suspended organization ends the stream within seconds', async (t) => {
  const { caller, open } = await setStage(t)
  const stream = await open()
  const other = await node.createCaller()
  const theirs = await openStream(t, baseOf(node), other.secret)
  await endKey(node.foundation, caller.keyId)
  await until('it to end', () => stream.hasEnded(), { timeoutMs: 5_000 })
  assert.equal(theirs.hasEnded(), false)
  await changeOrganizationStatus(node.foundation, other.organizationId, 'suspended')
  await until('it to end', () => theirs.hasEnded(), { timeoutMs: 5_000 })
})

test('stream: event ids are read back, and any other text is refused', () => {
  const cursor = fc.record({
    xact: fc.bigInt({ min: 0n, max: 2n ** 62n }).map(String),
    seq: fc.nat(),
    item: fc.nat(9999),
  })
  fc.assert(
    fc.property(fc.uuid(), cursor, (id, where) => {
      assert.deepEqual(parseEventId(formatEventId(id, where)), { id, cursor: { ...where } })
    }),
  )
  fc.assert(fc.property(fc.string(), (text) => void parseEventId(text)))
})

let full: TestNode | null = null

// From here on, one more node delivers and files mail.
test('stream: a key sees the events of its scope, and a restricted key those of its inboxes', async (t) => {
  const node = (full = await startNode(place, { env }))
  const caller = await node.createCaller()
  const [own, other] = [await caller.api.createInbox(), await caller.api.createInbox()]
  const inboxIds = [own.id as never]
  const keys = {
    everything: caller,
    webhooks: await addKey(node, caller, { scopes: ['webhook:manage'] }),
    mailbox: await addKey(node, caller, { scopes: ['mailbox:read'] }),
    restricted: await addKey(node, caller, { scopes: ['mailbox:read'], inboxIds }),
    restrictedWebhooks: await addKey(node, caller, { scopes: ['webhook:manage'], inboxIds }),
    restrictedToAnother: await addKey(node, caller, { scopes: ['*'], inboxIds: ['inb_0' as never] }),
  }
  const open = (secret: string, last?: string) => openStream(t, baseOf(node), secret, last)
  const refused = await addKey(node, caller, { scopes: ['delivery:read', 'mailbox:send'] })
  assert.equal((await open(refused.secret)).status, 403)
  const streams = new Map(
    await Promise.all(
      Object.entries(keys).map(async ([name, { secret }]) => [name, await open(secret)] as const),
    ),
  )
  await send(caller.api, other, [own.address])
  await send(caller.api, own, [other.address])
  await tell(caller, 1, { at: node })
  const everything = streams.get('everything')!
  const countOf = (type: string) => everything.events.filter((event) => event.type === type).length
  await until('all of it', () => countOf('message.received') === 2 && countOf('message.delivered') === 2)
  await until('the suppression', () => countOf('suppression.created') === 1)
  const all = everything.events
  const isOwn = ({ body: { data } }: StreamedEvent) =>
    (data['message'] as { inboxId?: string } | undefined)?.inboxId === own.id
  const wanted: Record<string, StreamedEvent[]> = {
    webhooks: all,
    mailbox: all.filter(({ type }) => type.startsWith('message.')),
    restricted: all.filter(isOwn),
    restrictedWebhooks: all.filter(isOwn),
    restrictedToAnother: [],
  }
  assert.deepEqual([...new Set(wanted['restricted']!.map(({ type }) => type))].sort(), [
    ...['message.delivered', 'message.received', 'message.sent'],
  ])
  for (const [name, events] of Object.entries(wanted)) {
    await until(`what ${name} sees`, () => streams.get(name)!.events.length >= events.length)
    assert.deepEqual(streams.get(name)!.events, events, name)
  }
  // Resumes after its last event, and after any other event of the organization.
  const [seen, ...rest] = wanted['restricted']!
  const again = await open(keys.restricted.secret, seen!.id!)
  const [first] = [await open(keys.restricted.secret, all[0]!.id!)]
  await until('the rest', () => again.events.length === rest.length)
  assert.deepEqual(again.events, rest)
  await until('the same from another', () => first.events.length >= rest.length)
  assert.ok(first.events.every(isOwn))
})

// This test stops the node that delivers.
test('stream: last-event-id resumes after that event, through another node and after a restart', async (t) => {
  const { caller, open } = await setStage(t)
  const stopped = (full ??= await startNode(place, { env }))
  const first = await openStream(t, baseOf(stopped), caller.secret)
  const ids = await tell(caller, 10, { at: stopped })
  await until('the events', () => first.events.length === 10)
  const last = first.events[3]!.id!
  await stopped.stop()
  await until('the stream to end with its node', () => first.hasEnded())
  const late = await tell(caller, 5)
  const resumed = await open(last)
  await until('the rest', () => resumed.events.length === 11)
  assert.deepEqual(idsOf(resumed), [...ids.slice(4), ...late])
  const more = await tell(caller)
  await until('one more', () => resumed.events.length === 12)
  assert.deepEqual(idsOf(resumed).slice(11), more)
})

// Runs last, because it moves the clock by a week.
test('stream: an unknown or old last-event-id gets stream.reset first, once', async (t) => {
  const { caller, open } = await setStage(t)
  const stream = await open()
  await tell(caller)
  const { id } = await until('the event', () => stream.events[0])
  const foreign = await node.createCaller()
  const theirs = await openStream(t, baseOf(node), foreign.secret, id!)
  await until('a reset for another organization', () => theirs.events[0]?.type === 'stream.reset')
  for (const last of ['nonsense', '', id!.replace(/^......../, '00000000'), id!.replace(/-\d+$/, '-7')]) {
    const reset = await open(last)
    await until(`a reset after ${last}`, () => reset.events[0]?.type === 'stream.reset')
    const again = await open(reset.events[0]!.id!)
    const [told] = await tell(caller)
    await until('what happens next', () => again.events[0] && reset.events[1])
    assert.deepEqual([idsOf(again)[0], idsOf(reset)[1]], [told, told])
  }
  node.foundation.clock.advance(7 * day + 60_000)
  const old = await open(id!)
  await until('a reset after a week', () => old.events[0]?.type === 'stream.reset')
})
