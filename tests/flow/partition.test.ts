// A node that loses the database sends nothing that another may send, and recovers by itself.
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import type { Role } from '../../src/config/settings.ts'
import { isNodeLock } from '../../src/store/nodes.ts'
import type { Acceptance } from '../support/api.ts'
import { Door } from '../support/door.ts'
import { makePlace, send, startNode, type TestNode, untilStates } from '../support/node.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'

const place = await makePlace({ after })
const sink = await startSink(place)
/** The proxy in front of the database, for the node `cut.test` only. */
const door = new Door(place)
await door.open()
place.after(() => door.shut())

function startAs(roles: Role[], env: Record<string, string> = {}): Promise<TestNode> {
  const relay = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url, POSTHORN_RETRY_SCHEDULE: '1s' }
  return startNode(place, { env: { ...relay, ...env }, roles })
}

/** Takes requests and sends nothing. */
const front = await startAs(['api'])
const { db } = front.foundation
const { api } = await front.createCaller()
const inbox = await api.createInbox()

/** Sends alone until a test starts another node. */
await startAs(['delivery'], { POSTHORN_MAIL_HOST: 'cut.test', POSTHORN_DATABASE_URL: door.url })
// A node cannot stop while it waits for a silent database.
place.after(() => door.release())

/** The second sender. It has stopped when the test ends. */
async function startOther(t: TestContext): Promise<TestNode> {
  const other = await startAs(['delivery'], { POSTHORN_MAIL_HOST: 'other.test' })
  t.after(() => other.stop())
  return other
}

const idOf = ({ message }: Acceptance): string => message.internetMessageId

/** The trace field names the node that sent the copy. */
const senderOf = ({ raw }: Sink['copies'][number]): string => /^Received: by (\S+)/m.exec(raw.toString())![1]!

const sendersOf = (sent: Acceptance): string[] => sink.copiesOf(idOf(sent)).map(senderOf)

function sendMany(count: number): Promise<Acceptance[]> {
  return Promise.all(Array.from({ length: count }, (_, n) => send(api, inbox, [`r${n}@far.test`])))
}

async function untilDelivered(sent: Acceptance[]): Promise<void> {
  for (const { submission } of sent) await untilStates(api, submission.id, 'delivered')
}

/** The submissions of claimed deliveries: in transfer, or about to be. */
async function claimedSubmissions(): Promise<Set<string>> {
  const rows = await db.query<{ id: string }>(
    'select submission_id as id from delivery where claim_epoch is not null',
  )
  return new Set(rows.map(({ id }) => id))
}

/** The numbers of the nodes that count as alive. */
async function livingNodes(): Promise<number[]> {
  const rows = await db.query<{ id: number }>(
    `select n.id from node n where exists (
      select from pg_locks l where ${isNodeLock} and l.objid = n.id) order by n.id`,
  )
  return rows.map(({ id }) => id)
}

/** Asserts one copy of each message. A message in transfer at the cut may have two: from that node and from the other. */
function assertOnce(sent: Acceptance[], claimed: Set<string>): void {
  for (const one of sent) {
    const senders = sendersOf(one).sort()
    if (senders.length === 1) continue
    assert.deepEqual(senders, ['cut.test', 'other.test'])
    assert.ok(claimed.has(one.submission.id), 'sent twice, though nobody had it in hand at the cut')
  }
}

const breaks: {
  how: string
  cut(door: Door): void | Promise<void>
  heal(door: Door): void | Promise<void>
}[] = [
  { how: 'is silent', cut: (door) => door.silence(), heal: (door) => door.release() },
  { how: 'breaks', cut: (door) => door.shut(), heal: (door) => door.open() },
]

for (const { how, cut, heal } of breaks)
  test(`check 94: while the database connection ${how} another node takes over, and each message arrives once`, async (t) => {
    // The far server is slow and holds back replies: one to RCPT, and two to the end of a message.
    let [atEnd, beforeEnd] = [0, 0]
    const ready = Promise.withResolvers<null>()
    const late = Promise.withResolvers<null>()
    const held = Promise.withResolvers<null>()
    sink.rule = ({ stage: at, command, recipients }) => {
      if (at === 'mail') return ready.promise
      if (at === 'rcpt' && command.includes('late@') && beforeEnd++ === 0) return late.promise
      if (at !== 'message' || recipients.includes('late@far.test')) return null
      return atEnd++ < 2 ? held.promise : new Promise((done) => setTimeout(done, 100, null))
    }
    const delayed = await send(api, inbox, ['late@far.test'])
    const sent = [delayed, ...(await sendMany(100))]
    ready.resolve(null)
    await until('some to be in the air', () => beforeEnd > 0 && atEnd > 3)
    const claimed = await claimedSubmissions()
    assert.ok(claimed.has(delayed.submission.id))
    await cut(door)
    const other = await startOther(t)
    sent.push(...(await sendMany(10)))
    await until('the other node to have sent it', () => sendersOf(delayed).includes('other.test'))
    held.resolve(null)
    late.resolve(null)
    await untilDelivered(sent)
    await heal(door)
    await other.stop()
    const after = await sendMany(10)
    await untilDelivered(after)
    for (const one of after) assert.deepEqual(sendersOf(one), ['cut.test'])
    assert.deepEqual(sendersOf(delayed), ['other.test'])
    assertOnce(sent, claimed)
  })

test('check 94: a node joins again after its database server died silently', async (t) => {
  await untilDelivered(await sendMany(1))
  await until('the queue to be let go of', () => sink.open === 0)
  const before = await livingNodes()
  door.desert()
  await until('the node to be known again', async () => {
    const living = await livingNodes()
    return living.length === before.length && living.at(-1)! > before.at(-1)!
  })
  await startOther(t)
  const sent = await sendMany(60)
  await untilDelivered(sent)
  for (const one of sent) assert.equal(sink.copiesOf(idOf(one)).length, 1)
})
