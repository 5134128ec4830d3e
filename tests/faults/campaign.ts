// A fault campaign: load, deaths at random moments, a start after each, one last drain, and the reckoning.
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { Api, Inbox, Submission } from '../support/api.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { type Scope, until } from '../support/until.ts'
import { type Found, inboundKey, type Kill, type Ledger, reconcile, type Send } from './ledger.ts'
import { type Load, post, startLoad } from './load.ts'

interface Options {
  kills: number
  /** Deaths of PostgreSQL, every other one together with the service. */
  postgresKills: number
  seed: number
  /** Told a line after every kill. */
  report: (line: string) => void
}

interface Stage {
  posthorn: Posthorn
  sink: Sink
  api: Api
  inboxes: Inbox[]
  load: Load
  kills: Kill[]
  random: () => number
}

/** Runs the whole campaign; what it started ends with the scope. */
export async function runCampaign(scope: Scope, options: Options): Promise<Ledger> {
  const stage = await setStage(scope, options.seed)
  for (const [number, victim] of plan(options).entries()) {
    await killOnce(stage, victim, number)
    options.report(`kill ${number + 1}, ${victim}: ${progress(stage)}`)
  }
  await stage.load.stop()
  stage.sink.rule = () => null
  const found = await settle(stage)
  const { load, kills, inboxes } = stage
  const book = { sends: load.sends, arrivals: load.arrivals, kills, found }
  const ledger = reconcile(book, inboxes[0]!.address.split('@')[1]!)
  const status = await stage.posthorn.stop()
  if (status !== 0) load.surprises.push(`SIGTERM at the end gave exit status ${status}`)
  return { ...ledger, violations: [...ledger.violations, ...load.surprises] }
}

async function setStage(scope: Scope, seed: number): Promise<Stage> {
  const random = seeded(seed)
  const sink = await startSink(scope)
  const posthorn = await startPosthorn(scope, {
    env: {
      POSTHORN_HTTP: await ownAddress(),
      POSTHORN_SMTP: await ownAddress(),
      POSTHORN_DELIVERY: 'relay',
      POSTHORN_RELAY_URL: sink.url,
      POSTHORN_RETRY_SCHEDULE: '1s,2s',
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    },
  })
  const { api } = await createCaller(posthorn)
  const inboxes = await Promise.all([1, 2, 3, 4].map(() => api.createInbox()))
  sink.rule = ({ stage }) =>
    (stage === 'rcpt' || stage === 'message') && random() < 0.02 ? '451 4.7.1 not just now' : null
  const load = startLoad({ api, inboxes, random, smtp: () => posthorn.smtp })
  return { posthorn, sink, api, inboxes, load, kills: [], random }
}

/** A free port below those that are given out by number 0, so that nobody else's service gets it while ours is dead. */
async function ownAddress(): Promise<string> {
  for (;;) {
    const port = randomInt(20_000, 32_000)
    const server = createServer().listen(port, '127.0.0.1')
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    )
    server.close()
    if (isFree) return `127.0.0.1:${port}`
  }
}

function plan({ kills, postgresKills }: Options): Kill['victim'][] {
  const step = kills / Math.max(1, postgresKills)
  const victims: Kill['victim'][] = Array.from({ length: kills }, () => 'posthorn')
  for (let number = postgresKills; number > 0; number--)
    victims.splice(Math.round(number * step), 0, number % 2 === 1 ? 'both' : 'postgres')
  return victims
}

async function killOnce(stage: Stage, victim: Kill['victim'], number: number): Promise<void> {
  const { posthorn, sink, kills, random } = stage
  if (victim === 'posthorn') await moment(stage, number)
  else await pause(50 + 1800 * random())
  const fromMs = Date.now()
  if (victim !== 'posthorn' && posthorn.killPostgres() === null)
    throw new Error('there is no PostgreSQL to kill')
  if (victim === 'postgres') {
    await recovered(stage)
    kills.push({ victim, fromMs, settledMs: Date.now() })
    return
  }
  await posthorn.kill9()
  await until('the sink to see the connections of the dead end', () => sink.open === 0)
  kills.push({ victim, fromMs, settledMs: Date.now() })
  // Every seventh is killed once more while it starts, which promises nothing and must break nothing.
  if (number % 7 === 6) {
    const starting = posthorn.start().catch(() => {})
    await pause(800 * random())
    await killNow(stage)
    await starting
  }
  await posthorn.start()
}

async function killNow({ posthorn, sink, kills }: Stage): Promise<void> {
  const fromMs = Date.now()
  await posthorn.kill9()
  await until('the sink to see the connections of the dead end', () => sink.open === 0)
  kills.push({ victim: 'posthorn', fromMs, settledMs: Date.now() })
}

/**
 * Waits for the moment of death: a random one, or by turns the moment a mail's final dot, a request, or the last byte of
 * a message at the sink is on its way and not yet answered.
 */
async function moment({ posthorn, sink, load, random }: Stage, number: number): Promise<void> {
  await pause(50 + 1800 * random())
  const usualRule = sink.rule
  const { promise: fallen, resolve: fall } = Promise.withResolvers<void>()
  // Where nothing comes to be answered, any moment will do.
  const timer = setTimeout(fall, 5000)
  const turn = number % 5
  if (turn === 0 || turn === 4) fall()
  if (turn === 1) load.watch = (left) => left === 'dot' && setTimeout(fall, 6 * random())
  if (turn === 2) load.watch = (left) => left === 'request' && setTimeout(fall, 6 * random())
  if (turn === 3) {
    sink.rule = (step) => {
      if (step.stage === 'message') {
        // At once, so that no 250 of the sink's is read any more.
        void posthorn.kill9()
        fall()
      }
      return usualRule(step)
    }
  }
  await fallen
  clearTimeout(timer)
  load.watch = null
  sink.rule = usualRule
}

/** After the death of PostgreSQL alone: waits until what was begun since is accepted; starts a service that gave up. */
async function recovered({ posthorn, load }: Stage): Promise<void> {
  const [sends, arrivals] = [load.sends.length, load.arrivals.length]
  const works = async () => {
    if (!posthorn.isRunning()) await posthorn.start()
    const isSending = load.sends.slice(sends).some(({ promised }) => promised)
    return isSending && load.arrivals.slice(arrivals).some(({ outcome }) => outcome === 'acknowledged')
  }
  await until('sends and mails to be accepted after PostgreSQL died', works, { timeoutMs: 60_000 })
}

function progress({ load, sink }: Stage): string {
  const accepted = load.sends.filter(({ promised }) => promised).length
  const acknowledged = load.arrivals.filter(({ outcome }) => outcome === 'acknowledged').length
  return `${accepted} times 202, ${acknowledged} times 250, ${sink.copies.length} copies so far`
}

async function settle(stage: Stage): Promise<Found> {
  const { api, load, inboxes, sink } = stage
  const replays: Found['replays'] = new Map()
  await inParallel(load.sends, async (send) => void replays.set(send.key, await replay(api, send)))
  await until('every submission to end', async () => (await pending(api)) === 0, {
    timeoutMs: 180_000,
    everyMs: 250,
  })
  const states: Found['states'] = new Map()
  await inParallel([...replays.values()], async (answer) => {
    if (!answer) return
    const { submissionId } = answer.promised
    const submission = await api.want<Submission>(`/v1/submissions/${submissionId}`)
    states.set(
      submissionId,
      submission.recipients.map(({ status }) => status),
    )
  })
  const exported = await everythingFiled(api, inboxes, load)
  return { replays, states, ...exported, copies: sink.copies }
}

async function replay(
  api: Api,
  send: Send,
): Promise<{ promised: Send['promised'] & {}; replayed: boolean } | null> {
  const answer = await until(`an answer to ${send.key}`, () => post(api, send))
  return typeof answer === 'string' ? null : answer
}

async function pending(api: Api): Promise<number> {
  const page = await api.want<{ submissions: Submission[] }>('/v1/submissions?status=pending&limit=1')
  return page.submissions.length
}

/** Exports until every acknowledged mail is there, or a minute has passed: what is missing then is for the ledger. */
async function everythingFiled(
  api: Api,
  inboxes: Inbox[],
  load: Load,
): Promise<Pick<Found, 'stored' | 'outbound'>> {
  const deadlineMs = Date.now() + 60_000
  const acknowledged = load.arrivals.filter(({ outcome }) => outcome === 'acknowledged')
  for (;;) {
    const exported = await exportAll(api, inboxes)
    const isComplete = acknowledged.every(({ messageId, address }) =>
      exported.stored.has(inboundKey(messageId, address)),
    )
    if (isComplete || Date.now() > deadlineMs) return exported
    await pause(500)
  }
}

async function exportAll(api: Api, inboxes: Inbox[]): Promise<Pick<Found, 'stored' | 'outbound'>> {
  const stored: Found['stored'] = new Map()
  const outbound: Found['outbound'] = new Map()
  for (const inbox of inboxes) {
    for (const { id, direction, internetMessageId } of await api.exported(inbox.id)) {
      if (direction === 'outbound') count(outbound, id)
      else count(stored, inboundKey(internetMessageId, inbox.address))
    }
  }
  return { stored, outbound }
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

async function inParallel<Item>(items: Item[], one: (item: Item) => Promise<void>): Promise<void> {
  const waiting = items.values()
  const worker = async () => {
    for (const item of waiting) await one(item)
  }
  await Promise.all(Array.from({ length: 16 }, worker))
}

/** Mulberry32: the same seed, the same dice. */
function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
