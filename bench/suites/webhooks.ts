// Webhooks: calls to a fast receiver, alone and with an endpoint that answers after 15 s, and the memory of 1,000 streams.
import { randomUUIDv7 } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { type Scope, until } from '../../tests/support/until.ts'
import { startChild, temporaryFolder, untilReady } from '../children.ts'
import { sendBody } from '../load/http.ts'
import { call, createInbox, type Posthorn, startPosthorn } from '../peers/posthorn.ts'
import { openSession, shareDatabase } from '../peers/posthorn-store.ts'
import { enter, type Plan, runCase, withCost } from '../plan.ts'
import { formatCase } from '../report.ts'
import type { Outcome, Sample } from '../rounds.ts'
import { memoryOf } from '../usage.ts'

interface Receiver {
  port: number
  counts(): Promise<{ fast: number; slow: number }>
}

interface Announcer {
  posthorn: Posthorn
  /** Announces `message.sent` for messages that were really sent, several per transaction, as acceptance does. */
  announce(events: number): Promise<void>
}

const messages = 200
const itemsAtOnce = 50
const textBytes = 1_000
const readers = 1_000
const mark = 'event: message.sent'

export async function benchWebhooks(scope: Scope, plan: Plan): Promise<void> {
  await benchCalls(scope, plan)
  await benchStreams(scope, plan)
}

async function benchCalls(scope: Scope, plan: Plan): Promise<void> {
  const entrants = [
    await enter('alone', async () => startCaller(scope, ['/fast'])),
    await enter('beside one of 15 s', async () => startCaller(scope, ['/slow', '/fast'])),
  ]
  const events = plan.extent === 'quick' ? 200 : Math.ceil(plan.targetMs)
  await runCase(
    plan,
    `webhook calls, ${textBytes / 1000} KB of text, to one fast endpoint`,
    entrants,
    (caller) => () => measureCalls(caller, events),
  )
}

interface Caller extends Announcer {
  receiver: Receiver
}

async function startCaller(scope: Scope, paths: string[]): Promise<Caller> {
  const receiver = await startReceiver(scope)
  const posthorn = await startPosthorn(scope, { roles: 'api,webhooks,jobs' })
  const announcer = await makeAnnouncer(scope, posthorn)
  for (const path of paths) {
    const body = JSON.stringify({ url: `http://127.0.0.1:${receiver.port}${path}` })
    await call(posthorn, { method: 'POST', path: '/v1/webhooks', body })
  }
  return { ...announcer, receiver }
}

async function startReceiver(scope: Scope): Promise<Receiver> {
  const program = fileURLToPath(new URL('../load/webhook-receiver.ts', import.meta.url))
  const child = startChild(scope, temporaryFolder(scope, 'receiver'), process.execPath, [program])
  const port = await untilReady(child, 'the receiver listens', () => Number(child.output()))
  const counts = async () =>
    (await fetch(`http://127.0.0.1:${port}/count`)).json() as ReturnType<Receiver['counts']>
  return { port, counts }
}

async function measureCalls({ posthorn, receiver, announce }: Caller, events: number): Promise<Sample> {
  const before = (await receiver.counts()).fast
  const pids = () => [...posthorn.servicePids(), ...posthorn.databasePids()]
  const { seconds, cpuUs } = await withCost({ pids }, async () => {
    const startedMs = performance.now()
    await announce(events)
    const have = async () => (await receiver.counts()).fast >= before + events
    await until(`${events} calls`, have, { timeoutMs: 120_000, everyMs: 10 })
    return { messages: events, seconds: (performance.now() - startedMs) / 1000 }
  })
  return { 'CPU µs/call': cpuUs, 'calls/s': events / seconds }
}

async function makeAnnouncer(scope: Scope, posthorn: Posthorn): Promise<Announcer> {
  const inboxId = await createInbox(posthorn, 'sender')
  const submissions: string[] = []
  const [path, body] = [`/v1/inboxes/${inboxId}/messages`, sendBody({ recipient: 'u@far.test', textBytes })]
  for (let n = 0; n < messages; n++) {
    const key = randomUUIDv7()
    const accepted = await call<{ submission: { id: string } }>(posthorn, { method: 'POST', path, body, key })
    submissions.push(accepted.submission.id)
  }
  const session = await openSession(scope, await shareDatabase(scope, posthorn.dataFolder))
  const { rows } = await session.query('select organization_id as org from inbox where id = $1', [inboxId])
  const announce = (events: number) => append(session, rows[0].org, submissions, events)
  return { posthorn, announce }
}

async function append(session: pg.Client, org: string, submissions: string[], events: number): Promise<void> {
  for (let begin = 0; begin < events; begin += itemsAtOnce) {
    const facts = Array.from({ length: Math.min(itemsAtOnce, events - begin) }, (_, n) => ({
      org,
      id: randomUUIDv7(),
      type: 'message.sent',
      event: 0,
      submission: submissions[(begin + n) % submissions.length],
    }))
    await session.query('select append_outbox($1, now())', [JSON.stringify(facts)])
  }
}

async function benchStreams(scope: Scope, plan: Plan): Promise<void> {
  const posthorn = await startPosthorn(scope, { roles: 'api' })
  const { announce } = await makeAnnouncer(scope, posthorn)
  const weigh = () => memoryOf(posthorn.servicePids()).rssBytes / 1e6
  const count = plan.extent === 'quick' ? 100 : readers
  const sample: Sample = { 'RSS at rest': weigh() }
  const streams = await Promise.all(Array.from({ length: count }, () => openStream(scope, posthorn)))
  sample['RSS, all connected'] = weigh()
  // Every second stream stops reading.
  for (const { socket } of streams.filter((_, n) => n % 2 === 1)) socket.pause()
  const events = 100
  const startedMs = performance.now()
  await announce(events)
  const reading = streams.filter((_, n) => n % 2 === 0)
  const have = () => reading.every(({ events: seen }) => seen() >= events)
  await until('every reader that reads has every event', have, { timeoutMs: 300_000 })
  sample['s for all'] = (performance.now() - startedMs) / 1000
  sample['RSS, half of them not reading'] = weigh()
  const outcome: Outcome = { name: 'Posthorn', samples: [sample] }
  plan.print(formatCase(`memory, ${count} stream readers and ${events} events, MB, once`, [outcome]))
}

async function openStream(scope: Scope, posthorn: Posthorn): Promise<{ socket: Socket; events(): number }> {
  const { hostname, port } = new URL(posthorn.http)
  const socket = connect({ host: hostname, port: Number(port) })
  scope.after(() => void socket.destroy())
  let events = 0
  let begun = false
  let tail = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    begun = true
    const text = tail + chunk
    events += text.split(mark).length - 1
    // A mark may span two chunks.
    tail = text.slice(Math.max(text.lastIndexOf(mark) + mark.length, text.length - mark.length + 1))
  })
  socket.write(`GET /v1/events HTTP/1.1\r\nhost: bench\r\nx-api-key: ${posthorn.key}\r\n\r\n`)
  await until('a stream begins', () => begun)
  return { socket, events: () => events }
}
