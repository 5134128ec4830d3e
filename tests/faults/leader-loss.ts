// The leader of a Patroni cluster is lost again and again under load: killed, frozen, cut off or switched over.
import type { Api, Inbox } from '../support/api.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { type Scope, until } from '../support/until.ts'
import { type Kill, type Ledger, reconcile } from './ledger.ts'
import { type Load, relayTo, seeded, startLoad } from './load.ts'
import { type Member, type Pace, PatroniCluster } from './patroni.ts'
import { settle } from './settle.ts'

export const losses = ['killed', 'frozen', 'cut off', 'switched over'] as const
export type Loss = (typeof losses)[number]

interface Options {
  plan: readonly Loss[]
  pace: Pace
  seed: number
  report: (line: string) => void
}

/** The longest time without a 202, or without a 250. */
const longestOutageMs = 20_000
/** The number of sends and of mails that are answered before a loss, and again after it. */
const answersEach = 40
/** Longer than a write is tried again while its outcome is unknown. */
const replyTimeoutMs = 60_000

/** One loss. Times in milliseconds since the epoch. */
interface Passed {
  loss: Loss
  fromMs: number
  /** When Patroni first said that another server is the primary. */
  promotedMs: number
  settledMs: number
  outages: { api: number; smtp: number }
}

interface Stage {
  cluster: PatroniCluster
  posthorn: Posthorn
  sink: Sink
  api: Api
  inboxes: Inbox[]
  load: Load
}

/** How a leader is lost, and how its server returns. */
const faults: Record<Loss, { begin(leader: Member): unknown; end(leader: Member): void }> = {
  killed: { begin: (leader) => leader.signal('SIGKILL'), end: (leader) => leader.start() },
  frozen: { begin: (leader) => leader.signal('SIGSTOP'), end: (leader) => leader.signal('SIGCONT') },
  'cut off': { begin: ({ machine }) => machine.unplug(), end: ({ machine }) => machine.plugIn() },
  'switched over': { begin: (leader) => leader.switchOver(), end: () => {} },
}

/** Runs the whole campaign. Everything that it started ends with the scope. */
export async function runLeaderLosses(scope: Scope, { plan, pace, seed, report }: Options): Promise<Ledger> {
  const stage = await setStage(scope, pace, seed)
  const { load, api, inboxes, sink, posthorn } = stage
  const passed: Passed[] = []
  for (const loss of plan) {
    const one = await lose(stage, loss)
    const { fromMs, promotedMs, outages } = one
    report(`${loss}: Patroni ${promotedMs - fromMs} ms, API ${outages.api} ms, SMTP ${outages.smtp} ms`)
    passed.push(one)
  }
  await load.stop()
  const { sends, arrivals } = load
  const found = await settle({ api, inboxes, sink, sends, arrivals })
  const kills = passed.map(({ fromMs, settledMs }): Kill => ({ victim: 'PostgreSQL', fromMs, settledMs }))
  const ledger = reconcile({ sends, arrivals, kills, found }, inboxes[0]!.address.split('@')[1]!)
  const status = await posthorn.stop()
  if (status !== 0) load.surprises.push(`SIGTERM at the end gave exit status ${status}`)
  const long = passed.filter(({ outages }) => Math.max(outages.api, outages.smtp) > longestOutageMs)
  return {
    figures: [['losses of the leader', passed.length], ...ledger.figures],
    violations: [
      ...[...ledger.violations, ...load.surprises],
      ...long.map(({ loss, outages }) => `${loss}: ${JSON.stringify(outages)} ms`),
    ],
  }
}

async function setStage(scope: Scope, pace: Pace, seed: number): Promise<Stage> {
  const cluster = await PatroniCluster.start(scope, pace)
  const sink = await startSink(scope)
  const posthorn = await startPosthorn(scope, {
    env: {
      POSTHORN_DATABASE_URL: cluster.url,
      ...relayTo(sink),
    },
  })
  const { api } = await createCaller(posthorn)
  const inboxes = await Promise.all([1, 2, 3, 4].map(() => api.createInbox()))
  const mail = { isRepeated: true, timeoutMs: replyTimeoutMs }
  const load = startLoad({ api, inboxes, random: seeded(seed), smtp: () => posthorn.smtp, mail, pauseMs: 50 })
  scope.after(() => load.stop())
  return { cluster, posthorn, sink, api, inboxes, load }
}

/** Loses the leader, waits until Patroni has another and both APIs work again, and lets the server return. */
async function lose({ cluster, load }: Stage, loss: Loss): Promise<Passed> {
  const leader = await cluster.untilWhole()
  await untilAnswered(load)
  const fromMs = Date.now()
  const begun = faults[loss].begin(leader)
  await cluster.untilPromoted(leader)
  const promotedMs = Date.now()
  await untilAnswered(load)
  const settledMs = Date.now()
  await begun
  faults[loss].end(leader)
  return { loss, fromMs, promotedMs, settledMs, outages: outagesOf(load, fromMs, settledMs) }
}

/** Waits for answers to both kinds of work. */
async function untilAnswered(load: Load): Promise<void> {
  const before = [answersOf(load, 'api').length, answersOf(load, 'smtp').length]
  const isMore = () =>
    answersOf(load, 'api').length >= before[0]! + answersEach &&
    answersOf(load, 'smtp').length >= before[1]! + answersEach
  await until('sends and mails to be accepted', isMore, { timeoutMs: 90_000, everyMs: 100 })
}

/** When each 202, or each 250, was read, in order. */
function answersOf({ answeredMs }: Load, kind: 'api' | 'smtp'): number[] {
  const isOfKind = ([key]: [string, number]) => key.startsWith('<') === (kind === 'smtp')
  return [...answeredMs].filter(isOfKind).map(([, ms]) => ms)
}

/** The longest time without an answer that a loss has caused. */
function outagesOf(load: Load, fromMs: number, settledMs: number): Passed['outages'] {
  const longest = (kind: 'api' | 'smtp') => {
    const times = answersOf(load, kind)
    const gaps = times.slice(1).map((ms, n) => (ms > fromMs && times[n]! < settledMs ? ms - times[n]! : 0))
    return Math.max(0, ...gaps)
  }
  return { api: longest('api'), smtp: longest('smtp') }
}
