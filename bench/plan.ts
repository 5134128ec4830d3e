// What a run is asked for, and how a suite gathers its contenders whether or not each of them can take part.
import { setTimeout as pause } from 'node:timers/promises'
import type { Scope } from '../tests/support/until.ts'
import { formatCase } from './report.ts'
import { type Contender, interleave, type Outcome, type Sample } from './rounds.ts'
import { cpuMsOf } from './usage.ts'

export interface Plan {
  /** Rounds that count, after the discarded one. */
  rounds: number
  /** How long one measurement should last. */
  targetMs: number
  /** Part of the titles of the cases that run; null: all. */
  caseName: string | null
  /** How long a sustained load lasts: in its own suite, and before memory is looked at again. */
  sustainedMs: number
  soakMs: number
  /** Messages a second that are taken as the most that can be had; null: it is found out. */
  topRate: number | null
  /** `quick` only proves that everything runs: few cases, small loads. */
  extent: 'quick' | 'full'
  print(text: string): void
}

/** What a contender costs is read from its programs and, where it has one, from its database. */
export interface Measured {
  pids(): number[]
  /** Bytes written to the write-ahead log so far. */
  walBytes?(): Promise<number>
}

/** Runs to the end with whatever it started undone by `scope`. */
export type Suite = (scope: Scope, plan: Plan) => Promise<void>

/** A contender that has been started, or the reason why it could not be. */
export type Entrant<Peer> = { name: string; peer: Peer } | { name: string; absence: string }

/** Starts a contender; whatever goes wrong becomes the line that names it in the table. */
export async function enter<Peer>(name: string, start: () => Promise<Peer>): Promise<Entrant<Peer>> {
  try {
    return { name, peer: await start() }
  } catch (error) {
    return { name, absence: (error as Error).message }
  }
}

/** Measures what entered in interleaved rounds and prints the case; who is absent is named in it. */
export async function runCase<Peer>(
  plan: Plan,
  title: string,
  entrants: Entrant<Peer>[],
  contend: (peer: Peer, name: string) => Contender['measure'],
): Promise<void> {
  if (!wantsCase(plan, title)) return
  const contenders = entrants.flatMap((entrant) =>
    'peer' in entrant ? [{ name: entrant.name, measure: contend(entrant.peer, entrant.name) }] : [],
  )
  const measured = await interleave(contenders, plan.rounds)
  const outcomes = entrants.map(
    (entrant): Outcome =>
      'peer' in entrant
        ? measured.find(({ name }) => name === entrant.name)!
        : { name: entrant.name, samples: [], absence: entrant.absence },
  )
  plan.print(formatCase(title, outcomes))
}

/** Whether a case of this title is asked for. */
export function wantsCase({ caseName }: Plan, title: string): boolean {
  return caseName === null || title.includes(caseName)
}

interface Cost {
  loadCpuUs: number
  cpuUs: number
  /** Empty for who has no database. */
  wal: Sample
}

/**
 * Runs `load` and gives the CPU that the programs used for each of its messages, in microseconds: until it was over, and
 * until they were quiet again, so that nothing put off is forgotten, and none of it falls into the next contender's turn.
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

/** The CPU used once it has hardly grown for 200 ms; after 5 s whatever it is by then. */
async function quietCpuMs(pids: () => number[]): Promise<number> {
  const deadlineMs = performance.now() + 5000
  for (let usedMs = cpuMsOf(pids()); ; ) {
    await pause(200)
    const laterMs = cpuMsOf(pids())
    if (laterMs - usedMs <= 10 || performance.now() > deadlineMs) return laterMs
    usedMs = laterMs
  }
}
