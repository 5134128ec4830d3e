// A fault campaign: load, kills at random moments, a start after each, one last drain, and the ledger.
import { setTimeout as pause } from 'node:timers/promises'
import type { Api, Inbox } from '../support/api.ts'
import { ownAddress } from '../support/own-address.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { type Scope, until } from '../support/until.ts'
import { type Kill, type Ledger, reconcile } from './ledger.ts'
import { type Load, seeded, startLoad } from './load.ts'
import { settle } from './settle.ts'

interface Options {
  kills: number
  /** Kills of PostgreSQL. Every second one also kills the service. */
  postgresKills: number
  seed: number
  /** Receives a line after every kill. */
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
  kills.push({ victim: 'posthorn', fromMs, settledMs: Date.now() })
}

/**
 * Waits for the moment of the kill. This is a random moment, or in turn one at which an answer is pending: to a mail's final
 * dot, to a request, or to the last byte of a message at the sink.
 */
async function moment({ posthorn, sink, load, random }: Stage, number: number): Promise<void> {
  await pause(50 + 1800 * random())
  const usualRule = sink.rule
  const { promise: fallen, resolve: fall } = Promise.withResolvers<void>()
  // If no answer becomes pending, any moment will do.
  const timer = setTimeout(fall, 5000)
  const turn = number % 5
  if (turn === 0 || turn === 4) fall()
  if (turn === 1) load.watch = (left) => left === 'dot' && setTimeout(fall, 6 * random())
  if (turn === 2) load.watch = (left) => left === 'request' && setTimeout(fall, 6 * random())
  if (turn === 3) {
    sink.rule = (step) => {
      if (step.stage === 'message') {
        // At once, so that no later 250 of the sink is read.
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
