// One of two nodes has a bad network to the database under load: cut off while it holds claims, open connections that carry
// nothing, 100 ms of delay, lost packets. No mail is lost or doubled without an excuse, and all heals by itself.
import { setTimeout as pause } from 'node:timers/promises'
import { ownProgram } from '../support/command.ts'
import { freePort } from '../support/free-port.ts'
import type { Posthorn } from '../support/service.ts'
import { type Scope, until } from '../support/until.ts'
import { type Cluster, startCluster, untilAllLive } from './cluster.ts'
import { type Kill, type Ledger, reconcile } from './ledger.ts'
import { type Load, seeded, startLoadAt, takeSlowly } from './load.ts'
import { type Machine, startNetwork } from './net-namespace.ts'
import { settle } from './settle.ts'
import { type SlowLink, startSlowLink } from './slow-link.ts'

/** The parts of a bad network that a fault may use. */
interface Wires {
  link: SlowLink
  machine: Machine
  /** The address of the link. */
  database: string
}

interface NetFault {
  name: string
  /** Whether the node cannot work meanwhile. Then the other node takes over, and a second copy has an excuse. */
  isCut: boolean
  pass(wires: Wires, lengthMs: number): Promise<void>
}

export const netFaults: NetFault[] = [
  {
    name: 'the database gets no packet of the node',
    isCut: true,
    pass: async ({ machine, database }, lengthMs) => {
      machine.misdirect(database)
      await pause(lengthMs)
      machine.direct(database)
    },
  },
  {
    name: 'connections that carry nothing',
    isCut: true,
    pass: async ({ link }, lengthMs) => {
      link.freeze()
      await pause(lengthMs)
      link.thaw()
    },
  },
  {
    name: '100 ms to the database',
    isCut: false,
    pass: async ({ link }, lengthMs) => {
      link.delayMs = 50
      await pause(lengthMs)
      link.delayMs = 0
    },
  },
  {
    name: 'packets to the database lost for a quarter of the time',
    isCut: false,
    pass: async ({ machine, database }, lengthMs) => {
      for (const untilMs = Date.now() + lengthMs; Date.now() < untilMs; await pause(600)) {
        machine.misdirect(database)
        await pause(200)
        machine.direct(database)
      }
    },
  },
  {
    name: 'all packets of the node lost for a quarter of the time',
    isCut: false,
    pass: async ({ machine }, lengthMs) => {
      for (const untilMs = Date.now() + lengthMs; Date.now() < untilMs; await pause(600)) {
        machine.unplug()
        await pause(200)
        machine.plugIn()
      }
    },
  },
]

interface Options {
  faults: readonly NetFault[]
  rounds: number
  /** The length of each fault. A silent node counts as dead after 15 s. */
  lengthMs: number
  seed: number
  report: (line: string) => void
}

/** An answer that was under way may arrive until then. */
const lastAnswerMs = 1_000

/** A node stops sending when its lease ends. A copy may be in transfer then. */
const lastCopyMs = 16_000

interface Stage {
  cluster: Cluster
  wires: Wires
  /** The loads at the node that is well and at the one with the bad network. */
  loads: [Load, Load]
}

export async function runPartition(scope: Scope, options: Options): Promise<Ledger> {
  const { faults, rounds, lengthMs, report } = options
  const stage = await setStage(scope, options.seed)
  const { cluster, loads } = stage
  const kills: Kill[] = []
  for (const fault of Array.from({ length: rounds }, () => faults).flat()) {
    await untilAccepted(loads, `before ${fault.name}`)
    const [fromMs, before] = [Date.now(), loads.map(countAccepted)]
    await fault.pass(stage.wires, lengthMs)
    const healedMs = Date.now()
    const accepted = loads.map((load, n) => countAccepted(load) - before[n]!)
    await untilAllLive(cluster)
    await untilAccepted(loads, `after ${fault.name}`)
    report(
      `${fault.name}: ${accepted[0]} accepted by the other node, ${accepted[1]} by this one, well after ${Date.now() - healedMs} ms`,
    )
    const meanwhile = [...loads[1].answeredMs.values()].filter(
      (atMs) => atMs > fromMs + lastAnswerMs && atMs < healedMs,
    )
    if (fault.isCut && meanwhile.length > 0)
      loads[1].surprises.push(`${fault.name}: the node accepted ${meanwhile.length} while it was cut off`)
    if (accepted[0] === 0) loads[0].surprises.push(`${fault.name}: the other node accepted nothing`)
    if (fault.isCut) kills.push({ victim: 'service', fromMs, settledMs: fromMs + lastCopyMs })
  }
  return await reckon(stage, kills, rounds * faults.length)
}

async function setStage(scope: Scope, seed: number): Promise<Stage> {
  const { here, alsoHere, machines } = startNetwork(scope, 1)
  const [machine] = machines
  const { there, wrap } = machine!
  const port = await freePort()
  const link = await startSlowLink(scope, alsoHere, { host: here, port })
  const second = {
    program: wrap(ownProgram),
    env: {
      POSTHORN_HTTP: `${there}:0`,
      POSTHORN_SMTP: `${there}:0`,
      POSTHORN_DATABASE_URL: `postgres://posthorn@${alsoHere}:${link.port}/postgres`,
    },
  }
  const cluster = await startCluster(scope, { host: here, port, second })
  const { nodes, sink } = cluster
  const random = seeded(seed)
  takeSlowly(sink, random)
  const mail = { isRepeated: true, timeoutMs: 60_000 }
  const load = (name: string, node: Posthorn) =>
    startLoadAt(cluster, node, { name, random, mail, senders: 3, pauseMs: 60 })
  const loads: [Load, Load] = [load('well-connected', nodes[0]), load('badly-connected', nodes[1])]
  scope.after(async () => {
    machine!.plugIn()
    link.thaw()
    await Promise.all(loads.map((one) => one.stop()))
  })
  return { cluster, wires: { link, machine: machine!, database: alsoHere }, loads }
}

async function reckon({ cluster, loads }: Stage, kills: Kill[], faults: number): Promise<Ledger> {
  const { api, inboxes, sink, nodes } = cluster
  await Promise.all(loads.map((load) => load.stop()))
  const [sends, arrivals] = [loads.flatMap((load) => load.sends), loads.flatMap((load) => load.arrivals)]
  const found = await settle({ api, inboxes, sink, sends, arrivals })
  const ledger = reconcile({ sends, arrivals, kills, found }, inboxes[0]!.address.split('@')[1]!)
  const statuses = [await nodes[0].stop(), await nodes[1].stop()]
  return {
    figures: [['faults of the network', faults], ...ledger.figures],
    violations: [
      ...ledger.violations,
      ...loads.flatMap(({ surprises }) => surprises),
      ...statuses.flatMap((status) => (status === 0 ? [] : [`SIGTERM gave exit status ${status}`])),
    ],
  }
}

function countAccepted({ answeredMs }: Load): number {
  return answeredMs.size
}

/** Waits until both nodes have accepted a send and a mail that were begun from now on. */
async function untilAccepted(loads: readonly Load[], when: string): Promise<void> {
  const begun = loads.map(({ sends, arrivals }) => ({ sends: sends.length, arrivals: arrivals.length }))
  const isAccepted = (load: Load, n: number) =>
    load.sends.slice(begun[n]!.sends).some(({ promised }) => promised) &&
    load.arrivals.slice(begun[n]!.arrivals).some(({ outcome }) => outcome === 'acknowledged')
  await until(`both nodes to accept mail ${when}`, () => loads.every(isAccepted), { timeoutMs: 90_000 })
}
