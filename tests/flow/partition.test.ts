// A node is cut off from the database: it sends nothing that another may send, and goes on by itself afterwards.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Role } from '../../src/config/settings.ts'
import { isNodeLock } from '../../src/store/nodes.ts'
import type { Acceptance, Api, Inbox } from '../support/api.ts'
import { Door } from '../support/door.ts'
import { makePlace, send, startNode, type TestNode, untilStates } from '../support/node.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'

interface Stage {
  sink: Sink
  /** Before the database of the node `cut.test`, and no other. */
  door: Door
  /** Takes requests and sends nothing. */
  front: TestNode
  api: Api
  inbox: Inbox
  start(name: 'cut.test' | 'other.test'): Promise<TestNode>
}

async function setStage(t: TestContext): Promise<Stage> {
  const place = await makePlace(t)
  const sink = await startSink(t)
  const door = new Door(place)
  await door.open()
  place.after(() => door.shut())
  const startAs = (roles: Role[], env: Record<string, string> = {}) =>
    startNode(place, {
      env: {
        POSTHORN_DELIVERY: 'relay',
        POSTHORN_RELAY_URL: sink.url,
        POSTHORN_RETRY_SCHEDULE: '1s',
        ...env,
      },
      roles,
    })
  const front = await startAs(['api'])
  const { api } = await front.createCaller()
  const start = async (name: string) => {
    const way: Record<string, string> = name === 'cut.test' ? { POSTHORN_DATABASE_URL: door.url } : {}
    const node = await startAs(['delivery'], { POSTHORN_MAIL_HOST: name, ...way })
    // No node could end while it waits for a silent database.
    place.after(() => door.release())
    return node
  }
  return { sink, door, front, api, inbox: await api.createInbox(), start }
}

const idOf = ({ message }: Acceptance): string => message.internetMessageId

/** The node that sent it says so in its trace. */
const senderOf = ({ raw }: Sink['copies'][number]): string => /^Received: by (\S+)/m.exec(raw.toString())![1]!

const sendersOf = ({ sink }: Stage, sent: Acceptance): string[] => sink.copiesOf(idOf(sent)).map(senderOf)

function sendMany({ api, inbox }: Stage, count: number): Promise<Acceptance[]> {
  return Promise.all(Array.from({ length: count }, (_, n) => send(api, inbox, [`r${n}@far.test`])))
}

async function untilDelivered({ api }: Stage, sent: Acceptance[]): Promise<void> {
  for (const { submission } of sent) await untilStates(api, submission.id, 'delivered')
}

/** The submissions of what is claimed: on the wire, or about to be. */
async function claimedSubmissions({ front }: Stage): Promise<Set<string>> {
  const rows = await front.foundation.db.query<{ id: string }>(
    'select submission_id as id from delivery where claim_epoch is not null',
  )
  return new Set(rows.map(({ id }) => id))
}

/** The numbers under which nodes are known to live. */
async function livingNodes({ front }: Stage): Promise<number[]> {
  const rows = await front.foundation.db.query<{ id: number }>(
    `select n.id from node n where exists (
      select from pg_locks l where ${isNodeLock} and l.objid = n.id) order by n.id`,
  )
  return rows.map(({ id }) => id)
}

/** One copy of each, or two of what was on its way when the node was cut off: from that node and from the other. */
function assertOnce(stage: Stage, sent: Acceptance[], claimed: Set<string>): void {
  for (const one of sent) {
    const senders = sendersOf(stage, one).sort()
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
  test(`check 94: while the way to the database ${how} another node takes over, and each message arrives once`, async (t) => {
    const stage = await setStage(t)
    const { sink, door, api, inbox } = stage
    // The far side is slow, and some stay in the air: one before its end, two at it.
    let [atEnd, beforeEnd] = [0, 0]
    const late = Promise.withResolvers<null>()
    const held = Promise.withResolvers<null>()
    sink.rule = ({ stage: at, command, recipients }) => {
      if (at === 'rcpt' && command.includes('late@') && beforeEnd++ === 0) return late.promise
      if (at !== 'message' || recipients.includes('late@far.test')) return null
      return atEnd++ < 2 ? held.promise : new Promise((done) => setTimeout(done, 100, null))
    }
    const delayed = await send(api, inbox, ['late@far.test'])
    const sent = [delayed, ...(await sendMany(stage, 100))]
    await stage.start('cut.test')
    await until('some to be in the air', () => beforeEnd > 0 && atEnd > 3)
    const claimed = await claimedSubmissions(stage)
    assert.ok(claimed.has(delayed.submission.id))
    await cut(door)
    const other = await stage.start('other.test')
    sent.push(...(await sendMany(stage, 10)))
    await until('the other node to have sent it', () => sendersOf(stage, delayed).includes('other.test'))
    held.resolve(null)
    late.resolve(null)
    await untilDelivered(stage, sent)
    await heal(door)
    await other.stop()
    const after = await sendMany(stage, 10)
    await untilDelivered(stage, after)
    for (const one of after) assert.deepEqual(sendersOf(stage, one), ['cut.test'])
    assert.deepEqual(sendersOf(stage, delayed), ['other.test'])
    assertOnce(stage, sent, claimed)
  })

test('check 94: a node whose server has died without a word is known to the next one', async (t) => {
  const stage = await setStage(t)
  await stage.start('cut.test')
  await untilDelivered(stage, await sendMany(stage, 1))
  await until('the queue to be let go of', () => stage.sink.open === 0)
  const before = await livingNodes(stage)
  stage.door.desert()
  await until('the node to be known again', async () => {
    const living = await livingNodes(stage)
    return living.length === before.length && living.at(-1)! > before.at(-1)!
  })
  await stage.start('other.test')
  const sent = await sendMany(stage, 60)
  await untilDelivered(stage, sent)
  for (const one of sent) assert.equal(stage.sink.copiesOf(idOf(one)).length, 1)
})
