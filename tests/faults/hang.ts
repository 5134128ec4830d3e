// One of two nodes hangs for a minute under load and resumes: the other's mail is on time, none is lost, claims run once.
// The node is stopped, or its network is cut silently.
import { setTimeout as pause } from 'node:timers/promises'
import { ownProgram } from '../support/command.ts'
import type { Posthorn } from '../support/service.ts'
import { type Scope, until } from '../support/until.ts'
import { type Cluster, numberOf, startCluster, untilAllLive } from './cluster.ts'
import { type Delay, listDelays, longestMs, Observer } from './delays.ts'
import { type Ledger, reconcile } from './ledger.ts'
import { type Load, seeded, startLoadAt, takeSlowly } from './load.ts'
import { startNetwork } from './net-namespace.ts'
import { settle } from './settle.ts'

const hungMs = 60_000
/** A node counts as dead by then, and its sessions have ended if its machine is lost. */
const deadMs = 15_000
/** Mail without a part in the hung node arrives within this time after its 202 or 250. */
const delayMs = 10_000
/** A copy that the sink took by then was in transfer when the node hung. The sink answers within 300 ms. */
const onWireMs = 1_000
const pollMs = 50
/** The number of mails and sends of each load that are answered before the fault, and after it. */
const answersEach = 150

interface Options {
  report: (line: string) => void
  seed: number
}

/** The database's records of the hung node at the hang. */
interface Hang {
  fromMs: number
  /** When the node resumed. */
  untilMs: number
  routes: Set<string>
  claims: number
  /** The time until each ended after the hang began, by name. */
  ended: Map<string, number>
}

interface Stage {
  cluster: Cluster
  number: number
  /** The loads at the healthy node and at the hung one. */
  well: Load
  hung: Load
  observer: Observer
  hang(): void
  goOn(): void
  /** Everything that must end within `deadMs`: SQL that is true once it has ended, by name. */
  endings: Record<string, string>
}

/** A node stopped by SIGSTOP: its kernel still answers. */
export async function runFreeze(scope: Scope, options: Options): Promise<Ledger> {
  const cluster = await startCluster(scope)
  const { pid } = cluster.nodes[1]
  const goOn = () => void process.kill(pid, 'SIGCONT')
  scope.after(() => {
    if (cluster.nodes[1].isRunning()) goOn()
  })
  const hang = () => void process.kill(pid, 'SIGSTOP')
  return await runHang(scope, cluster, { hang, goOn, isDark: false }, options)
}

/** A node whose machine loses its network: no packet comes from it. */
export async function runDark(scope: Scope, options: Options): Promise<Ledger> {
  const { here, machines } = startNetwork(scope, 1)
  const [machine] = machines
  const { there, wrap, plugIn, unplug } = machine!
  const second = {
    program: wrap(ownProgram),
    env: { POSTHORN_HTTP: `${there}:0`, POSTHORN_SMTP: `${there}:0` },
  }
  const cluster = await startCluster(scope, { host: here, second })
  scope.after(() => plugIn())
  const fault = { hang: unplug, goOn: plugIn, isDark: true }
  return await runHang(scope, cluster, fault, options)
}

async function runHang(
  scope: Scope,
  cluster: Cluster,
  { isDark, ...fault }: Pick<Stage, 'hang' | 'goOn'> & { isDark: boolean },
  { report, seed }: Options,
): Promise<Ledger> {
  const stage = { ...(await startStage(scope, cluster, { isDark, seed })), ...fault }
  const { well, hung } = stage
  await untilMore('both nodes to work', [well, hung])
  const hang = await passHang(stage)
  report(`it hung with ${hang.claims} deliveries claimed and ${hang.routes.size} queues owned`)
  report(`meanwhile: ${progress(well)}`)
  await untilAllLive(cluster)
  await untilMore('both nodes to work again', [well, hung])
  return await reckon(stage, hang)
}

async function startStage(
  scope: Scope,
  cluster: Cluster,
  { isDark, seed }: { isDark: boolean; seed: number },
): Promise<Omit<Stage, 'hang' | 'goOn'>> {
  const { api, inboxes, nodes, sink } = cluster
  const random = seeded(seed)
  takeSlowly(sink, random)
  const load = (name: string, node: Posthorn) =>
    startLoadAt(cluster, node, { name, random, senders: 3, pauseMs: 60 })
  const [well, hung] = [load('well-node', nodes[0]), load('hung-node', nodes[1])]
  const observer = new Observer(api, inboxes)
  scope.after(async () => void (await Promise.all([well.stop(), hung.stop(), observer.stop()])))
  const number = await until('the node to have a number', () => numberOf(cluster, nodes[1]))
  const endings: Stage['endings'] = {
    'known to be lost': `not ${number} = any(living_nodes())`,
  }
  if (isDark) {
    const { host } = nodes[1].smtp
    const sessions = `select from pg_stat_activity where client_addr = '${host}'`
    endings['its sessions and their locks ended'] = `not exists (${sessions})`
    endings['its transactions ended'] = `not exists (${sessions} and xact_start is not null)`
  }
  return { cluster, number, well, hung, observer, endings }
}

const answers = ({ answeredMs }: Load): number => answeredMs.size

async function untilMore(what: string, loads: Load[]): Promise<void> {
  const before = loads.map(answers)
  const isMore = () => loads.every((load, index) => answers(load) >= before[index]! + answersEach)
  await until(what, isMore, { timeoutMs: 180_000 })
}

/** The whole hang, from a moment at which the node has deliveries in transfer. */
async function passHang({ cluster, number, hang, goOn, endings }: Stage): Promise<Hang> {
  const { server } = cluster
  const claimed = `select count(*)::integer as n from delivery d join route r on r.key = d.route
    where r.owner = ${number} and d.claim_epoch = r.epoch`
  const claims = async () => Number((await server.ask(claimed))[0]!['n'])
  await until('the node to have deliveries on the wire', async () => (await claims()) > 1)
  hang()
  const fromMs = Date.now()
  const found = {
    fromMs,
    claims: await claims(),
    ended: new Map<string, number>(),
    routes: new Set<string>(),
  }
  while (Date.now() < fromMs + hungMs) {
    // Repeated, because a request from before the hang may be answered after it.
    const owned = await server.ask(`select key from route where owner = ${number}`)
    for (const { key } of owned) found.routes.add(String(key))
    for (const [name, sql] of Object.entries(endings)) {
      if (found.ended.has(name)) continue
      const [row] = await server.ask(`select (${sql}) as has_ended`)
      if (row!['has_ended']) found.ended.set(name, Date.now() - fromMs)
    }
    await pause(pollMs)
  }
  goOn()
  return { ...found, untilMs: Date.now() }
}

async function reckon(stage: Stage, hang: Hang): Promise<Ledger> {
  const { cluster, well, hung, observer } = stage
  const { api, inboxes, sink, nodes } = cluster
  await Promise.all([well.stop(), hung.stop()])
  const sends = [...well.sends, ...hung.sends]
  const arrivals = [...well.arrivals, ...hung.arrivals]
  const found = await settle({ api, inboxes, sink, sends, arrivals })
  const delays = (load: Load) => listDelays(load, sink.copies, observer)
  await until('the observer to have seen everything', () =>
    [...delays(well), ...delays(hung)].every(({ arrivedMs }) => arrivedMs !== null),
  ).catch(() => {})
  await observer.stop()
  const kill = { victim: 'service', fromMs: hang.fromMs, settledMs: hang.fromMs + onWireMs } as const
  const ownDomain = inboxes[0]!.address.split('@')[1]!
  const ledger = reconcile({ sends, arrivals, kills: [kill], found }, ownDomain)
  const judged = judge(hang, { well: delays(well), hung: delays(hung) })
  const statuses = [await nodes[0].stop(), await nodes[1].stop()]
  const violations = [
    ...[...ledger.violations, ...judged.violations, ...well.surprises, ...hung.surprises],
    ...late(hang, stage),
    ...statuses.flatMap((status) => (status === 0 ? [] : [`SIGTERM at the end gave exit status ${status}`])),
    ...doubledLater(observer, hang),
  ]
  return {
    figures: [
      ...ledger.figures,
      ['longest wait for a 202 or 250 at the node that is well, ms', well.slowestMs],
      ...judged.figures,
      ...[...hang.ended].map(([name, ms]): [string, number] => [`${name} after, ms`, ms]),
    ],
    violations,
  }
}

/** Judges mail that the healthy node has accepted: its delay, by whether the hung node had a part in it. */
function judge({ fromMs, untilMs, routes }: Hang, { well, hung }: { well: Delay[]; hung: Delay[] }): Ledger {
  const isTouched = ({ route, answeredMs, arrivedMs }: Delay) => {
    // In progress when the other node hung, which may have held it.
    if (answeredMs < fromMs) return arrivedMs === null || arrivedMs >= fromMs
    // A hung node owns its queues until it counts as dead, so that no mail is sent twice.
    return route !== null && routes.has(route) && answeredMs < fromMs + deadMs
  }
  const isMeanwhile = ({ answeredMs }: Delay) => answeredMs >= fromMs && answeredMs < untilMs
  const touched = well.filter(isTouched)
  const untouched = well.filter((delay) => !isTouched(delay))
  const slow = untouched.filter((delay) => longestMs([delay]) > delayMs)
  const slower = touched.filter((delay) => longestMs([delay]) > deadMs + delayMs)
  return {
    figures: [
      ['mail without part of the hung node, recipients', untouched.length],
      ['  of it taken meanwhile', untouched.filter(isMeanwhile).length],
      ['  longest delay, ms', longestMs(untouched)],
      ['mail in hand or in a queue of the hung node, recipients', touched.length],
      ['  longest delay, ms', longestMs(touched)],
      ['mail that the hung node had taken, longest delay, ms', longestMs(hung)],
    ],
    violations: [...slow, ...slower].map((delay) => `${delay.what} took ${longestMs([delay])} ms`),
  }
}

function late({ ended }: Hang, { endings }: Stage): string[] {
  return Object.keys(endings).flatMap((name) => {
    const ms = ended.get(name)
    if (ms === undefined) return [`not ${name} after ${hungMs} ms`]
    return ms > deadMs + pollMs ? [`${name} only after ${ms} ms`] : []
  })
}

/** Second copies in inboxes that came after the hung node resumed: its claims were stale by then. */
function doubledLater({ seenMs }: Observer, { untilMs }: Hang): string[] {
  const doubled = [...seenMs].filter(([, times]) => times.length > 1 && times.at(-1)! >= untilMs)
  return doubled.map(([key]) => `${key}: stored once more after the hung node went on`)
}

function progress({ sends, arrivals }: Load): string {
  const accepted = sends.filter(({ promised }) => promised).length
  const acknowledged = arrivals.filter(({ outcome }) => outcome === 'acknowledged').length
  return `${accepted} times 202, ${acknowledged} times 250 at the node that is well`
}
