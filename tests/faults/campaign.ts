// A fault campaign: load, kills at random moments, a start after each, one last drain, and the ledger.
import { setTimeout as pause } from 'node:timers/promises'
import type { Api, Inbox } from '../support/api.ts'
import { ownAddress } from '../support/own-address.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { type Scope, until } from '../support/until.ts'
import { countKills, type Kill, type Ledger, reconcile } from './ledger.ts'
import { type Load, relayTo, seeded, startLoad } from './load.ts'
import { reachMoment } from './moment.ts'
import { settle } from './settle.ts'

interface Options {
  kills: number
  /** Kills of PostgreSQL. Every second one also kills the service. */
  postgresKills: number
  seed: number
  /** Receives a line after every kill. */
  report: (line: string) => void
}

type Victim = 'service' | 'PostgreSQL' | 'service and PostgreSQL'

interface Stage {
  posthorn: Posthorn
  sink: Sink
  api: Api
  inboxes: Inbox[]
  load: Load
  kills: Kill[]
  random: () => number
}

/** Runs the whole campaign. Everything that it started ends with the scope. */
export async function runCampaign(scope: Scope, options: Options): Promise<Ledger> {
  const stage = await setStage(scope, options.seed)
  for (const [number, victim] of plan(options).entries()) {
    await killOnce(stage, victim, number)
    options.report(`kill ${number + 1}, ${victim}: ${progress(stage)}`)
  }
  await stage.load.stop()
  stage.sink.rule = () => null
  const { api, load, kills, inboxes, sink } = stage
  const { sends, arrivals } = load
  const found = await settle({ api, inboxes, sink, sends, arrivals })
  const book = { sends, arrivals, kills, found }
  const ledger = reconcile(book, inboxes[0]!.address.split('@')[1]!)
  const status = await stage.posthorn.stop()
  if (status !== 0) load.surprises.push(`SIGTERM at the end gave exit status ${status}`)
  return {
    figures: [...countKills(kills), ...ledger.figures],
    violations: [...ledger.violations, ...load.surprises],
  }
}

async function setStage(scope: Scope, seed: number): Promise<Stage> {
  const random = seeded(seed)
  const sink = await startSink(scope)
  const posthorn = await startPosthorn(scope, {
    env: {
      POSTHORN_HTTP: await ownAddress(),
      POSTHORN_SMTP: await ownAddress(),
      ...relayTo(sink),
    },
  })
  const { api } = await createCaller(posthorn)
  const inboxes = await Promise.all([1, 2, 3, 4].map(() => api.createInbox()))
  sink.rule = ({ stage }) =>
    (stage === 'rcpt' || stage === 'message') && random() < 0.02 ? '451 4.7.1 not just now' : null
  const load = startLoad({ api, inboxes, random, smtp: () => posthorn.smtp })
  return { posthorn, sink, api, inboxes, load, kills: [], random }
}

function plan({ kills, postgresKills }: Options): Victim[] {
  const step = kills / Math.max(1, postgresKills)
  const victims: Victim[] = Array.from({ length: kills }, () => 'service')
  for (let number = postgresKills; number > 0; number--)
    victims.splice(Math.round(number * step), 0, number % 2 === 1 ? 'service and PostgreSQL' : 'PostgreSQL')
  return victims
}

async function killOnce(stage: Stage, victim: Victim, number: number): Promise<void> {
  const { posthorn, sink, kills, random } = stage
  if (victim === 'service') await reachMoment(stage, number, () => void posthorn.kill9())
  else await pause(50 + 1800 * random())
  const fromMs = Date.now()
  if (victim !== 'service' && posthorn.killPostgres() === null)
    throw new Error('there is no PostgreSQL to kill')
  if (victim === 'PostgreSQL') {
    await recovered(stage)
    kills.push({ victim, fromMs, settledMs: Date.now() })
    return
  }
  await posthorn.kill9()
  await until('the sink to see the connections of the dead end', () => sink.open === 0)
  kills.push({ victim, fromMs, settledMs: Date.now() })
  // Every seventh is killed once more during its start, which promises nothing and must break nothing.
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
  kills.push({ victim: 'service', fromMs, settledMs: Date.now() })
}

/** After a kill of PostgreSQL alone: waits until everything begun since is accepted. Starts a service that has exited. */
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
