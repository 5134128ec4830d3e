// One process of several is killed again and again under load: a worker of four, or a node of three.
import { setTimeout as pause } from 'node:timers/promises'
import { Api, type Inbox } from '../support/api.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { type Scope, until } from '../support/until.ts'
import { isAlive, readByWorker, workersOf } from '../support/worker-group.ts'
import { startCluster } from './cluster.ts'
import { countKills, type Kill, type Ledger, reconcile } from './ledger.ts'
import { type Load, relayTo, seeded, startLoad } from './load.ts'
import { reachMoment } from './moment.ts'
import { settle } from './settle.ts'

export type Part = 'worker' | 'node'

interface Options {
  part: Part
  kills: number
  seed: number
  /** Receives a line after every kill. */
  report: (line: string) => void
}

interface Stage {
  services: Posthorn[]
  sink: Sink
  api: Api
  inboxes: Inbox[]
  loads: Load[]
  random: () => number
  /** Resolves with the next victim once it may be killed. */
  choose(): Promise<Chosen>
}

interface Chosen {
  load: Load
  /** Sends SIGKILL. */
  kill(): void
  /** Resolves once another process has replaced it. */
  replaced(): Promise<unknown>
}

const workers = 4
const nodes = 3
/** Three deaths of a worker within 10 s of its start would end the service. */
const minWorkerAgeMs = 10_500
/** Bytes of a killed process that the kernel still holds reach the sink by then. */
const onWireMs = 1_000

/** Runs the whole campaign. Everything that it started ends with the scope. */
export async function runOneOfSeveral(scope: Scope, options: Options): Promise<Ledger> {
  const { part, kills: count, seed, report } = options
  const stage = await (part === 'worker' ? startWorkers : startNodes)(scope, seeded(seed))
  const { loads, api, inboxes, sink, services } = stage
  scope.after(async () => void (await Promise.all(loads.map((load) => load.stop()))))
  sink.rule = ({ stage: step }) =>
    (step === 'rcpt' || step === 'message') && stage.random() < 0.02 ? '451 4.7.1 not just now' : null
  const kills: Kill[] = []
  for (let number = 0; number < count; number++) {
    kills.push(await killOne(stage, part, number))
    report(`kill ${number + 1}, ${part}: ${progress(stage)}`)
  }
  await Promise.all(loads.map((load) => load.stop()))
  sink.rule = () => null
  const sends = loads.flatMap((load) => load.sends)
  const arrivals = loads.flatMap((load) => load.arrivals)
  const found = await settle({ api, inboxes, sink, sends, arrivals })
  const ledger = reconcile({ sends, arrivals, kills, found }, inboxes[0]!.address.split('@')[1]!)
  const statuses = await Promise.all(services.map((service) => service.stop()))
  return {
    figures: [...countKills(kills), ...ledger.figures],
    violations: [
      ...[...ledger.violations, ...loads.flatMap(({ surprises }) => surprises)],
      ...statuses.flatMap((status) =>
        status === 0 ? [] : [`SIGTERM at the end gave exit status ${status}`],
      ),
    ],
  }
}

async function killOne(stage: Stage, part: Part, number: number): Promise<Kill> {
  const { load, kill, replaced } = await stage.choose()
  await reachMoment({ sink: stage.sink, random: stage.random, load }, number, kill)
  const fromMs = Date.now()
  kill()
  await replaced()
  return { victim: part, fromMs, settledMs: fromMs + onWireMs }
}

function progress({ loads, sink }: Stage): string {
  const answered = loads.reduce((sum, { answeredMs }) => sum + answeredMs.size, 0)
  return `${answered} times 202 or 250, ${sink.copies.length} copies so far`
}

/** A service with four workers. The one that has run longest is killed. */
async function startWorkers(scope: Scope, random: () => number): Promise<Stage> {
  const sink = await startSink(scope)
  const service = await startPosthorn(scope, {
    env: {
      POSTHORN_WORKERS: String(workers),
      ...relayTo(sink),
    },
  })
  const { api } = await createCaller(service)
  const inboxes = await Promise.all([1, 2, 3, 4].map(() => api.createInbox()))
  const load = startLoad({ api, inboxes, random, smtp: () => service.smtp })
  /** Begins with the oldest worker. */
  const startedMs = new Map([...workersOf(service).keys()].map((number) => [number, Date.now()]))
  const choose = async () => {
    const [number, fromMs] = [...startedMs][0]!
    await pause(Math.max(0, fromMs + minWorkerAgeMs - Date.now()))
    const pid = workersOf(service).get(number)!
    const replaced = async () => {
      const works = async () => {
        if (!service.isRunning()) throw new Error(`the service has ended:\n${service.log()}`)
        const next = workersOf(service).get(number)
        if (next === undefined || next === pid) return false
        return (await readByWorker(service, 'process_resident_memory_bytes')).has(String(number))
      }
      await until('another worker to work in its stead', works, { everyMs: 100, timeoutMs: 60_000 })
      startedMs.delete(number)
      startedMs.set(number, Date.now())
    }
    const kill = () => {
      if (isAlive(pid)) process.kill(pid, 'SIGKILL')
    }
    return { load, kill, replaced }
  }
  return { services: [service], sink, api, inboxes, loads: [load], random, choose }
}

/** Three nodes over one database, each with a load. Any of them is killed, and starts again after up to a second. */
async function startNodes(scope: Scope, random: () => number): Promise<Stage> {
  const cluster = await startCluster(scope, { more: nodes - 2 })
  const { sink, api, inboxes, secret } = cluster
  const loads = cluster.nodes.map((node, index) =>
    startLoad({
      name: `node-${index + 1}`,
      api: new Api(() => node.http, secret),
      smtp: () => node.smtp,
      inboxes,
      random,
      senders: 2,
    }),
  )
  const choose = async () => {
    const index = Math.floor(random() * nodes)
    const node = cluster.nodes[index]!
    let killing: Promise<void> | undefined
    const kill = () => {
      killing ??= node.kill9()
    }
    const replaced = async () => {
      await killing
      await pause(1_000 * random())
      await node.start()
    }
    return { load: loads[index]!, kill, replaced }
  }
  return { services: cluster.nodes, sink, api, inboxes, loads, random, choose }
}
