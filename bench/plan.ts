// The options of a run, and how a suite gathers its contenders even if some of them cannot take part.
import { setTimeout as pause } from 'node:timers/promises'
import type { Scope } from '../tests/support/until.ts'
import { formatCase } from './report.ts'
import { type Contender, interleave, type Outcome, type Sample } from './rounds.ts'
import { cpuMsOf } from './usage.ts'

export interface Plan {
  /** Rounds that count. The discarded first round is extra. */
  rounds: number
  /** The intended length of one measurement. */
  targetMs: number
  /** Runs only cases whose titles contain this text. Null: all. */
  caseName: string | null
  /** The length of a sustained load: in its own suite, and before memory is measured again. */
  sustainedMs: number
  soakMs: number
  /** The folder of the files that a suite writes. */
  outFolder: string
  /** The rate, in messages a second, that is taken as the maximum. Null: a burst finds it. */
  topRate: number | null
  /** The number of messages of the larger store. Null: a thousand times as many as in the smaller one. */
  messages: number | null
  /** `quick` only proves that everything runs: few cases and small loads. */
  extent: 'quick' | 'full'
  print(text: string): void
}

/** The cost of a contender is read from its programs and from its database, if it has one. */
export interface Measured {
  pids(): number[]
  /** Bytes written to the write-ahead log so far. */
  walBytes?(): Promise<number>
}

/** A suite runs to its end. `scope` ends everything that it started. */
export type Suite = (scope: Scope, plan: Plan) => Promise<void>

/** A contender that has started, or the reason why it could not. */
export type Entrant<Peer> = { name: string; peer: Peer } | { name: string; absence: string }

/** Starts a contender. If that fails, the error becomes its line in the table. */
export async function enter<Peer>(name: string, start: () => Promise<Peer>): Promise<Entrant<Peer>> {
  try {
    return { name, peer: await start() }
  } catch (error) {
    return { name, absence: (error as Error).message }
  }
}

/** Measures the contenders in interleaved rounds and prints the case. Absent contenders are named in it. */
export async function runCase<Peer>(
  plan: Plan,
  title: string,
  entrants: Entrant<Peer>[],
  contend: (peer: Peer, name: string) => Contender['measure'],
): Promise<void> {
  if (wantsCase(plan, title)) plan.print(formatCase(title, await measureCase(plan, entrants, contend)))
}

/** Measures the contenders in interleaved rounds. Absent contenders have an outcome too, with the reason. */
export async function measureCase<Peer>(
  plan: Plan,
  entrants: Entrant<Peer>[],
  contend: (peer: Peer, name: string) => Contender['measure'],
): Promise<Outcome[]> {
  const contenders = entrants.flatMap((entrant) =>
    'peer' in entrant ? [{ name: entrant.name, measure: contend(entrant.peer, entrant.name) }] : [],
  )
  const measured = await interleave(contenders, plan.rounds)
  return entrants.map(
    (entrant): Outcome =>
      'peer' in entrant
        ? measured.find(({ name }) => name === entrant.name)!
        : { name: entrant.name, samples: [], absence: entrant.absence },
  )
}

/** Returns whether the run includes a case of this title. */
export function wantsCase({ caseName }: Plan, title: string): boolean {
  return caseName === null || title.includes(caseName)
}

interface Cost {
  loadCpuUs: number
  cpuUs: number
  /** Empty if the contender has no database. */
  wal: Sample
}

/**
 * Runs `load` and returns the CPU microseconds per message: until the load ended, and until the programs were quiet.
 * The second figure includes deferred work. The wait keeps that work out of the next contender's turn.
 */
export async function withCost<Answer extends { messages: number }>(
  { pids, walBytes }: Measured,
  load: () => Promise<Answer>,
): Promise<Answer & Cost> {
  const walBefore = await walBytes?.()
  const beforeMs = cpuMsOf(pids())
  const answer = await load()
  const perMessage = (untilMs: number) => ((untilMs - beforeMs) * 1000) / answer.messages
  const loadCpuUs = perMessage(cpuMsOf(pids()))
  const cpuUs = perMessage(await quietCpuMs(pids))
  const walAfter = await walBytes?.()
  const wal: Sample =
    walBefore === undefined || walAfter === undefined
      ? {}
      : { 'WAL bytes/message': (walAfter - walBefore) / answer.messages }
  return { ...answer, loadCpuUs, cpuUs, wal }
}

/** Returns the CPU time once it has hardly grown for 200 ms, or after 5 s in any case. */
async function quietCpuMs(pids: () => number[]): Promise<number> {
  const deadlineMs = performance.now() + 5000
  for (let usedMs = cpuMsOf(pids()); ; ) {
    await pause(200)
    const laterMs = cpuMsOf(pids())
    if (laterMs - usedMs <= 10 || performance.now() > deadlineMs) return laterMs
    usedMs = laterMs
  }
}
