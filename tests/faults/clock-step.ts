// The clock of the database's machine jumps under load, as after a failover to a machine with a wrong clock. All nodes keep
// that time. No mail is lost, and none comes twice: no lease ends by a clock.
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Posthorn } from '../support/service.ts'
import { type Scope, until } from '../support/until.ts'
import { startCluster, untilAllLive } from './cluster.ts'
import { type Ledger, reconcile } from './ledger.ts'
import { type Load, seeded, startLoadAt, takeSlowly } from './load.ts'
import { settle } from './settle.ts'

const library = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1'

/**
 * Offsets from the true time, in seconds, one after another: forward by more than a node may be silent, back, and forward
 * again. The last one is the latest, so that all mail comes due.
 */
export const clockOffsets = [60, 0, 60, 3_600]

interface Options {
  offsets: readonly number[]
  /** How long each offset lasts. */
  lengthMs: number
  seed: number
  report: (line: string) => void
}

/** The reason why this machine cannot move a clock; null if it can. */
export function missingForClocks(): string | null {
  return existsSync(library) ? null : 'it moves the clock of PostgreSQL: apt-get install libfaketime'
}

export async function runClockSteps(
  scope: Scope,
  { offsets, lengthMs, seed, report }: Options,
): Promise<Ledger> {
  const clock = new MovedClock(scope)
  const cluster = await startCluster(scope, { databaseEnv: clock.env })
  const { server, nodes, inboxes, sink, api } = cluster
  const random = seeded(seed)
  takeSlowly(sink, random)
  const load = (name: string, node: Posthorn) =>
    startLoadAt(cluster, node, { name, random, senders: 3, pauseMs: 60 })
  const loads = [load('first-node', nodes[0]), load('second-node', nodes[1])]
  scope.after(async () => void (await Promise.all(loads.map((one) => one.stop()))))
  for (const offset of offsets) {
    await untilMore(loads)
    clock.moveTo(offset)
    await until('the database to have the new time', async () => {
      const [row] = await server.ask('select extract(epoch from clock_timestamp())::float8 as seconds')
      return Math.abs(Number(row!['seconds']) - Date.now() / 1000 - offset) < 5
    })
    await pause(lengthMs)
    await untilAllLive(cluster)
    report(
      `${offset} s from the true time: ${loads.map(({ answeredMs }) => answeredMs.size).join(' and ')} accepted`,
    )
  }
  await untilMore(loads)
  await Promise.all(loads.map((one) => one.stop()))
  const [sends, arrivals] = [loads.flatMap((one) => one.sends), loads.flatMap((one) => one.arrivals)]
  const found = await settle({ api, inboxes, sink, sends, arrivals })
  const ledger = reconcile({ sends, arrivals, kills: [], found }, inboxes[0]!.address.split('@')[1]!)
  const statuses = [await nodes[0].stop(), await nodes[1].stop()]
  return {
    figures: [['steps of the clock', offsets.length], ...ledger.figures],
    violations: [
      ...ledger.violations,
      ...loads.flatMap(({ surprises }) => surprises),
      ...statuses.flatMap((status) => (status === 0 ? [] : [`SIGTERM gave exit status ${status}`])),
    ],
  }
}

/** The time of a program's processes. Their monotonic clocks, by which they wait, stay true. */
class MovedClock {
  readonly env: Record<string, string>
  readonly #file: string

  constructor(scope: Scope) {
    const folder = mkdtempSync(join(tmpdir(), 'posthorn-clock-'))
    scope.after(() => rmSync(folder, { recursive: true, force: true }))
    // PostgreSQL runs as another user.
    chmodSync(folder, 0o755)
    this.#file = join(folder, 'offset')
    this.moveTo(0)
    this.env = {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    }
  }

  /** Sets the offset from the true time, in seconds. */
  moveTo(offset: number): void {
    writeFileSync(this.#file, `${offset < 0 ? '' : '+'}${offset}\n`)
  }
}

/** Waits until both nodes have accepted more sends and mails. */
async function untilMore(loads: readonly Load[]): Promise<void> {
  const before = loads.map(({ answeredMs }) => answeredMs.size)
  const isMore = () => loads.every(({ answeredMs }, n) => answeredMs.size >= before[n]! + 50)
  await until('both nodes to accept mail', isMore, { timeoutMs: 90_000 })
}
