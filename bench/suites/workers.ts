// Workers: rates of 1, 2, 4 and 8 small cores with as many workers, and the costs of one and two workers on real cores.
import type { Scope } from '../../tests/support/until.ts'
import { temporaryFolder } from '../children.ts'
import { startDns } from '../load/dns.ts'
import { saveMailSends, sendByHttp } from '../load/http.ts'
import type { MailShape } from '../load/mail-content.ts'
import type { SavedPool } from '../load/pool.ts'
import { recipient, type SavedMails, type Sink, saveMails, sendBySmtp, startSink } from '../load/smtp.ts'
import { makeVerifiedSender, writeMails } from '../load/verified-mail.ts'
import { call, createInbox, loadOf, type Posthorn, startPosthorn } from '../peers/posthorn.ts'
import { countInbox, type InboxCounter, measuredOf } from '../peers/posthorn-store.ts'
import {
  type Entrant,
  enter,
  type Measured,
  measureCase,
  type Plan,
  runCase,
  wantsCase,
  withCost,
} from '../plan.ts'
import { makeSmallCores } from '../quota.ts'
import { formatCase } from '../report.ts'
import { LoadSize, type Outcome, pairwiseRatio, type Sample } from '../rounds.ts'
import { cpuMsOf } from '../usage.ts'

/** The mail, its destination, and the resolver: the same for all services. */
interface Stage {
  dns: string
  sink: Sink
  mails: SavedMails
  bodies: SavedPool
}

interface Server extends Measured, Stage {
  posthorn: Posthorn
  counter: InboxCounter
  senderId: string
  /** The threads that are read. */
  threads: string[]
}

/** A kind of load. Resolves with the number of messages or requests, and its rates. */
interface Kind {
  title: string
  /** The figures that must grow with the workers. */
  rates: string[]
  run(server: Server, clients: number, size: LoadSize): Promise<{ messages: number; rates: Sample }>
}

const shape: MailShape = { textBytes: 5_000, files: 'none' }
const counts = [1, 2, 4, 8]
/** The part of a real core that a small core has. Eight of them leave more than one real core of two to all else. */
const share = 0.1
/** Enough for eight workers to have work while each waits for its next period. */
const smallClients = 128
const realClients = 50

const mailIn: Kind = {
  title: 'mail in, 5 KB, one message per connection',
  rates: ['accepted/s', 'filed/s'],
  run: async ({ posthorn, counter, mails }, sessions, size) => {
    const messages = size.count
    const load = { ...mails, sessions, connections: 'per-message', port: posthorn.smtpPort } as const
    const { startedAtMs, endedAtMs } = await sendBySmtp({ ...load, count: messages })
    const filedAtMs = await counter.reach(messages)
    size.observe(filedAtMs - startedAtMs)
    const rates = {
      'accepted/s': perSecond(messages, endedAtMs - startedAtMs),
      'filed/s': perSecond(messages, filedAtMs - startedAtMs),
    }
    return { messages, rates }
  },
}

const mailOut: Kind = {
  title: 'sends, 5 KB, from handing in to the sink',
  rates: ['accepted/s', 'sent/s'],
  run: async ({ posthorn, senderId, sink, bodies }, connections, size) => {
    const messages = size.count
    const before = sink.count()
    const load = { ...loadOf(posthorn), method: 'POST', connections, expectStatus: '202' } as const
    const { startedAtMs, endedAtMs } = await sendByHttp({
      ...load,
      bodies,
      paths: [`/v1/inboxes/${senderId}/messages`],
      count: messages,
    })
    const sentAtMs = await sink.reach(before + messages)
    size.observe(sentAtMs - startedAtMs)
    const rates = {
      'accepted/s': perSecond(messages, endedAtMs - startedAtMs),
      'sent/s': perSecond(messages, sentAtMs - startedAtMs),
    }
    return { messages, rates }
  },
}

const reads: Kind = {
  title: 'API reads of a thread',
  rates: ['read/s'],
  run: async ({ posthorn, threads }, connections, size) => {
    const load = { ...loadOf(posthorn), method: 'GET', connections, expectStatus: '200' } as const
    const paths = threads.map((id) => `/v1/threads/${id}`)
    const { startedAtMs, endedAtMs } = await sendByHttp({ ...load, paths, count: size.count })
    size.observe(endedAtMs - startedAtMs)
    return { messages: size.count, rates: { 'read/s': perSecond(size.count, endedAtMs - startedAtMs) } }
  },
}

const kinds = [mailIn, mailOut, reads]

export async function benchWorkers(scope: Scope, plan: Plan): Promise<void> {
  const stage = await setStage(scope)
  await benchSmallCores(scope, plan, stage)
  await benchRealCores(scope, plan, stage)
  await benchVersions(scope, plan, stage)
}

/** As many small cores as workers. PostgreSQL, the load and the sink have the real cores, without a quota. */
async function benchSmallCores(scope: Scope, plan: Plan, stage: Stage): Promise<void> {
  const cases = kinds.map((kind) => ({ kind, title: `small cores of ${share * 100} %, ${kind.title}` }))
  const wanted = cases.filter(({ title }) => wantsCase(plan, title))
  if (wanted.length === 0) return
  const entrants: Entrant<Server>[] = []
  for (const workers of plan.extent === 'quick' ? counts.slice(0, 2) : counts)
    entrants.push(await enter(nameOf(workers), () => startOnSmallCores(scope, plan, stage, workers)))
  for (const { kind, title } of wanted) {
    const outcomes = await measureCase(plan, entrants, (server) => {
      const size = new LoadSize({ first: 2 * smallClients, targetMs: plan.targetMs, max: 100_000 })
      return () => measureShares(server, kind, size)
    })
    plan.print(formatCase(`${title}, ${smallClients} clients`, outcomes) + formatGrowth(kind, outcomes))
  }
}

async function startOnSmallCores(scope: Scope, plan: Plan, stage: Stage, workers: number): Promise<Server> {
  // The quota begins after the warm-up, which would take ten times as long on small cores.
  const server = await startWarm(scope, plan, stage, { workers })
  const cores = makeSmallCores(scope, { count: workers, share })
  cores.hold(server.posthorn.servicePids())
  return server
}

/** Measures the rates, and the part of its core that each process used: of a small core, or of a real one. */
async function measureShares(server: Server, kind: Kind, size: LoadSize): Promise<Sample> {
  const { posthorn, sink } = server
  const processes = posthorn.processes()
  const parts: Record<string, number[]> = {
    PostgreSQL: posthorn.databasePids(),
    load: [process.pid, sink.pid],
  }
  const cpuMs = () => ({
    processes: processes.map(({ pid }) => cpuMsOf([pid])),
    parts: Object.values(parts).map(cpuMsOf),
  })
  const before = cpuMs()
  const startedMs = performance.now()
  const { rates } = await kind.run(server, smallClients, size)
  const elapsedMs = performance.now() - startedMs
  const after = cpuMs()
  const used = after.processes.map((ms, index) => ((ms - before.processes[index]!) / elapsedMs / share) * 100)
  const workers = used.filter((_, index) => processes[index]!.name !== 'supervisor')
  const sum = used.reduce((total, part) => total + part, 0)
  const supervisor = processes.findIndex(({ name }) => name === 'supervisor')
  return {
    ...rates,
    'all processes, % of the small cores': sum / workers.length,
    'busiest worker, % of a small core': Math.max(...workers),
    'idlest worker, % of a small core': Math.min(...workers),
    'supervisor, % of a small core': used[supervisor] ?? 0,
    'PostgreSQL, % of a real core': ((after.parts[0]! - before.parts[0]!) / elapsedMs) * 100,
    'load, % of a real core': ((after.parts[1]! - before.parts[1]!) / elapsedMs) * 100,
  }
}

/** A line for each rate: how many times one worker's, and that divided by the number of workers. */
function formatGrowth({ rates }: Kind, [first, ...others]: Outcome[]): string {
  const lines = rates.map((rate) => {
    const parts = others.flatMap((outcome) => {
      const times = pairwiseRatio(outcome, first!, rate)
      const workers = Number.parseInt(outcome.name, 10)
      return times === null
        ? []
        : [`${outcome.name} ${times.toFixed(2)} (${(times / workers).toFixed(2)} × n)`]
    })
    return `  ${rate}, to one worker: ${parts.join(', ')}\n`
  })
  return lines.join('')
}

/** Two workers and one on the cores of this machine. */
async function benchRealCores(scope: Scope, plan: Plan, stage: Stage): Promise<void> {
  const two = { name: nameOf(2), start: () => startWarm(scope, plan, stage, { workers: 2 }) }
  const one = { name: nameOf(1), start: () => startWarm(scope, plan, stage, { workers: 1 }) }
  await compare(plan, `real cores, ${realClients} clients`, [two, one])
}

/** One worker of this version, and the launcher that BENCH_LAUNCHER names. */
async function benchVersions(scope: Scope, plan: Plan, stage: Stage): Promise<void> {
  const launcher = process.env['BENCH_LAUNCHER']
  if (launcher === undefined) return
  await compare(plan, `versions, ${realClients} clients`, [
    { name: 'this version', start: () => startWarm(scope, plan, stage, { workers: 1 }) },
    { name: 'BENCH_LAUNCHER', start: () => startWarm(scope, plan, stage, { launcher }) },
  ])
}

async function compare(
  plan: Plan,
  name: string,
  contenders: readonly { name: string; start(): Promise<Server> }[],
): Promise<void> {
  const cases = kinds.map((kind) => ({ kind, title: `${name}, ${kind.title}` }))
  const wanted = cases.filter(({ title }) => wantsCase(plan, title))
  if (wanted.length === 0) return
  const entrants: Entrant<Server>[] = []
  for (const contender of contenders) entrants.push(await enter(contender.name, contender.start))
  for (const { kind, title } of wanted) {
    await runCase(plan, title, entrants, (server) => {
      const size = new LoadSize({ first: 1_000, targetMs: plan.targetMs, max: 100_000 })
      return () => measureCost(server, kind, size)
    })
  }
}

async function measureCost(server: Server, kind: Kind, size: LoadSize): Promise<Sample> {
  const { cpuUs, rates, wal } = await withCost(server, () => kind.run(server, realClients, size))
  return { 'CPU µs/message': cpuUs, ...rates, ...wal }
}

async function setStage(scope: Scope): Promise<Stage> {
  const folder = temporaryFolder(scope, 'workers')
  const sender = makeVerifiedSender()
  const { address } = await startDns(scope, sender.zone, 'example')
  return {
    dns: address,
    sink: await startSink(scope, folder),
    mails: saveMails(folder, writeMails(sender.write, shape, [recipient]), [recipient]),
    bodies: saveMailSends(folder, ['u@far.test'], shape),
  }
}

/** A program that has just started still compiles its code, and each worker does so for itself. */
async function startWarm(
  scope: Scope,
  plan: Plan,
  stage: Stage,
  options: { workers?: number; launcher?: string },
): Promise<Server> {
  const posthorn = await startPosthorn(scope, { ...options, dns: stage.dns, onward: stage.sink.port })
  const counter = await countInbox(scope, posthorn)
  const server: Server = {
    ...stage,
    ...(await measuredOf(scope, posthorn)),
    posthorn,
    counter,
    senderId: await createInbox(posthorn, 'sender'),
    threads: [],
  }
  const messages = (plan.extent === 'quick' ? 100 : 2_000) * (options.workers ?? 1)
  const size = () => new LoadSize({ first: messages, targetMs: 1, max: messages })
  await mailIn.run(server, realClients, size())
  await mailOut.run(server, realClients, size())
  const path = `/v1/inboxes/${counter.inboxId}/threads?limit=50`
  const { threads } = await call<{ threads: { id: string }[] }>(posthorn, { method: 'GET', path })
  server.threads = threads.map(({ id }) => id)
  await reads.run(server, realClients, size())
  return server
}

function perSecond(count: number, elapsedMs: number): number {
  return (count / elapsedMs) * 1000
}

function nameOf(workers: number): string {
  return `${workers} worker${workers > 1 ? 's' : ''}`
}
