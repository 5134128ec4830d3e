// Agents at work: a key for one inbox waits, reads and answers through every outage, and machines end their exchange.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { addKey } from '../support/agent-key.ts'
import { Api, type Inbox, type Message } from '../support/api.ts'
import { makePlace, startNode, type TestCaller, type TestNode, untilStates } from '../support/node.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

interface Received extends Message {
  automatic: boolean
}

const total = 1_000
/** The agent answers every tenth message. */
const answeredEvery = 10

/** An agent. It records everything for the test, but would only need to store the last id. */
class Agent {
  readonly #api: Api
  readonly #inboxId: string
  /** Messages with the time of reading, in that order. */
  readonly read: { message: Received; atMs: number }[] = []
  /** By the id of the answered message. */
  readonly answered = new Map<string, Message>()
  /** Whether one of its requests waits now. */
  isWaiting = false
  #after = '0'

  constructor(api: Api, inboxId: string) {
    this.#api = api
    this.#inboxId = inboxId
  }

  /** Waits for the next page, reads it, and answers each message that `wantsAnswer`. Retries while the service is down. */
  async step(wantsAnswer: (message: Received) => boolean, waitSeconds = 30): Promise<void> {
    this.isWaiting = true
    const query = `after=${this.#after}&direction=inbound&wait=${waitSeconds}`
    const page = await untilThere(() =>
      this.#api.want<{ messages: Received[] }>(`/v1/inboxes/${this.#inboxId}/messages?${query}`, {
        timeoutMs: (waitSeconds + 20) * 1_000,
      }),
    )
    this.isWaiting = false
    const atMs = performance.now()
    for (const message of page.messages) {
      this.read.push({ message, atMs })
      if (wantsAnswer(message)) await this.#answer(message)
      this.#after = message.id
    }
  }

  async #answer({ id, threadId }: Received): Promise<void> {
    const path = `/v1/threads/${threadId}/replies`
    const body = { targetMessageId: id, text: 'Noted.' }
    const { message } = await untilThere(() =>
      this.#api.want<{ message: Message }>(path, {
        method: 'POST',
        idempotencyKey: `answer:${id}`,
        body,
        status: 202,
      }),
    )
    this.answered.set(id, message)
  }
}

/** The response, once the service is up. A refusal is a fault. */
async function untilThere<Answer>(work: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (/ (?:wanted|was wanted), (?!503)/.test((error as Error).message)) throw error
      await pause(50)
    }
  }
}

/** Sends until the mail is accepted. Null if the outcome is unknown. */
async function deliver(
  posthorn: Pick<Posthorn, 'smtp'>,
  mail: { from: string; to: string; raw: Buffer },
): Promise<number | null> {
  for (;;) {
    const sent = await sendMail(posthorn.smtp, mail)
    if (sent.outcome === 'accepted') return performance.now()
    if (sent.outcome === 'lost' && sent.stage === 'message') return null
    await pause(50)
  }
}

const mailOf = (to: string, subject: string, more = '') => ({
  from: 'ada@far.test',
  to,
  raw: Buffer.from(
    `From: Ada <ada@far.test>\r\nTo: ${to}\r\nMessage-ID: <${subject}@far.test>\r\nSubject: ${subject}\r\n${more}\r\nHello\r\n`,
  ),
})

const medianOf = (numbers: number[]) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!

test('agents: a waiting agent answers 1,000 mails over three restarts, and misses or repeats none', async (t) => {
  const posthorn = await startPosthorn(t, { env: { POSTHORN_DELIVERY: 'capture' } })
  const { api, organizationId } = await createCaller(posthorn)
  const inbox = await api.createInbox('agent')
  const { secret } = await posthorn.cli<{ secret: string }>([
    ...['key', 'create', '--org', organizationId, '--name', 'agent', '--kind', 'agent', '--inbox', inbox.id],
    ...[
      '--scopes',
      'mailbox:read,mailbox:send',
      '--send-mode',
      'reply_only',
      '--requests-per-minute',
      '100000',
    ],
  ])
  const agent = new Agent(new Api(() => posthorn.http, secret), inbox.id)
  const takenAtMs = new Map<string, number>()
  const unsure = new Set<string>()
  const subjects = Array.from({ length: total }, (_, n) => `mail-${n}`)
  const left = subjects.values()
  const send = async () => {
    for (const subject of left) {
      const atMs = await deliver(posthorn, mailOf(inbox.address, subject))
      if (atMs === null) unsure.add(subject)
      else takenAtMs.set(subject, atMs)
    }
  }
  const sending = Promise.all([send(), send(), send(), send()])
  const restarting = restartAt(posthorn, agent, [200, 450, 700])
  const wantsAnswer = ({ subject }: Received) => Number(subject.slice(5)) % answeredEvery === 0
  let isSent = false
  void sending.then(() => (isSent = true))
  const isOver = () =>
    isSent &&
    [...takenAtMs.keys()].every((subject) => agent.read.some(({ message }) => message.subject === subject))
  while (!isOver()) await agent.step(wantsAnswer, 1)
  await restarting

  const read = agent.read.map(({ message }) => message.subject)
  assert.equal(new Set(read).size, read.length, 'one came twice')
  assert.deepEqual(
    subjects.filter((subject) => !read.includes(subject) && !unsure.has(subject)),
    [],
    'one was missed',
  )
  const replies = (await api.exported(inbox.id)).filter(({ direction }) => direction === 'outbound')
  assert.deepEqual(
    replies.map(({ id }) => id).sort(),
    [...agent.answered.values()].map(({ id }) => id).sort(),
  )
  assert.equal(
    replies.length,
    read.filter((subject) => Number(subject.slice(5)) % answeredEvery === 0).length,
  )

  const quiet: number[] = []
  for (let n = 0; n < 30; n++) {
    const step = agent.step(() => false)
    await until('it to wait', () => agent.isWaiting)
    const atMs = await deliver(posthorn, mailOf(inbox.address, `quiet-${n}`))
    await step
    quiet.push(agent.read.at(-1)!.atMs - atMs!)
  }
  const busy = agent.read.flatMap(({ message, atMs }) => {
    const takenMs = takenAtMs.get(message.subject)
    return takenMs === undefined ? [] : [atMs - takenMs]
  })
  t.diagnostic(
    `from 250 to the answer of the waiting request: median ${medianOf(quiet).toFixed(0)} ms, ${medianOf(busy).toFixed(0)} ms while mail comes as fast as it is taken; ${unsure.size} mails cut off behind their last byte`,
  )
  assert.ok(medianOf(quiet) < 1_000, `${medianOf(quiet)} ms`)
})

/** Ends the service at these counts of read messages, twice without a warning, and starts it again. */
async function restartAt(posthorn: Posthorn, agent: Agent, counts: number[]): Promise<void> {
  for (const [n, count] of counts.entries()) {
    await until(`${count} to be read`, () => agent.read.length >= count, { timeoutMs: 120_000 })
    await (n === 1 ? posthorn.stop() : posthorn.kill9())
    await posthorn.start()
  }
}

async function makeAgent(node: TestNode, caller: TestCaller, kind: 'agent' | 'server') {
  const inbox = await caller.api.createInbox()
  const key = { kind, scopes: ['mailbox:read', 'mailbox:send'], inboxIds: [inbox.id as never] }
  return { inbox, agent: new Agent(node.meet(await addKey(node, caller, key)), inbox.id) }
}

/** A mail from Ada to the first inbox, with replies going to the other. */
async function introduce(node: TestNode, one: Inbox, other: Inbox): Promise<void> {
  const { outcome } = await sendMail(
    node.smtp,
    mailOf(one.address, 'hello', `Reply-To: ${other.address}\r\n`),
  )
  assert.equal(outcome, 'accepted')
}

test('agents: two agents stop answering each other, since an agent’s mail is automatic', async (t) => {
  const node = await startNode(await makePlace(t), { env: { POSTHORN_DELIVERY: 'capture' } })
  const caller = await node.createCaller()
  const [ann, bob] = [await makeAgent(node, caller, 'agent'), await makeAgent(node, caller, 'agent')]
  await introduce(node, ann.inbox, bob.inbox)
  const politely = ({ automatic }: Received) => !automatic
  await ann.agent.step(politely)
  await bob.agent.step(politely)
  assert.deepEqual(
    [ann, bob].map(({ agent }) => agent.read.map(({ message }) => [message.subject, message.automatic])),
    [[['hello', false]], [['Re: hello', true]]],
  )
  // No more mail is on its way.
  await Promise.all([ann.agent.step(politely, 2), bob.agent.step(politely, 2)])
  assert.deepEqual(
    [ann, bob].map(({ agent }) => [agent.read.length, agent.answered.size]),
    [
      [1, 1],
      [1, 0],
    ],
  )
})

test('agents: mail by another kind of key is not automatic, and would be answered endlessly', async (t) => {
  const node = await startNode(await makePlace(t), { env: { POSTHORN_DELIVERY: 'capture' } })
  const caller = await node.createCaller()
  const [ann, bob] = [await makeAgent(node, caller, 'server'), await makeAgent(node, caller, 'server')]
  await introduce(node, ann.inbox, bob.inbox)
  for (const { agent } of [ann, bob, ann, bob]) await agent.step(({ automatic }) => !automatic)
  assert.deepEqual(
    [ann, bob].map(({ agent }) => agent.answered.size),
    [2, 2],
  )
})

test('agents: their mail is marked in its header at every attempt, and mail without a return path is automatic', async (t) => {
  const sink = await startSink(t)
  const env = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url, POSTHORN_RETRY_SCHEDULE: '1s' }
  const node = await startNode(await makePlace(t), { env })
  const caller = await node.createCaller()
  for (const [kind, wanted] of [
    ['agent', ['Auto-Submitted: auto-generated']],
    ['server', []],
    ['dashboard', []],
  ] as const) {
    const inbox = await caller.api.createInbox()
    const api = node.meet(await addKey(node, caller, { kind }))
    let refusals = 1
    sink.rule = ({ stage }) => (stage === 'message' && refusals-- > 0 ? '451 4.7.1 later' : null)
    const { message, submission } = await api.want<{ message: Message; submission: { id: string } }>(
      `/v1/inboxes/${inbox.id}/messages`,
      {
        method: 'POST',
        status: 202,
        idempotencyKey: `kind-${kind}`,
        body: { to: [{ email: 'a@far.test' }], subject: 'S', text: 'T' },
      },
    )
    await untilStates(caller.api, submission.id, 'delivered')
    const [copy] = sink.copiesOf(message.internetMessageId)
    const [header = ''] = copy!.raw.toString().split('\r\n\r\n')
    assert.deepEqual(
      header.split('\r\n').filter((line) => /^auto-submitted/i.test(line)),
      wanted,
    )
    assert.equal((message as { automatic?: boolean }).automatic, undefined)
  }
  const inbox = await caller.api.createInbox()
  const mail = { ...mailOf(inbox.address, 'returned'), from: '' }
  assert.equal((await sendMail(node.smtp, mail)).outcome, 'accepted')
  const agent = new Agent(caller.api, inbox.id)
  await agent.step(() => false)
  assert.deepEqual(
    agent.read.map(({ message }) => message.automatic),
    [true],
  )
})
