// Outbound, signed or not: from the first message handed in to the last one at the sink, ours by HTTP, theirs by SMTP.
import type { Scope } from '../../tests/support/until.ts'
import { freePort, temporaryFolder } from '../children.ts'
import { startFarWorld } from '../load/far-world.ts'
import { type MailShape, nameOf } from '../load/mail-content.ts'
import { type Sink, startSink } from '../load/smtp.ts'
import { type Relay, type Stage, startRelays } from '../peers/relays.ts'
import { type Entrant, type Plan, runCase, wantsCase, withCost } from '../plan.ts'
import { LoadSize, type Sample } from '../rounds.ts'

export interface Shape {
  title: string
  mail: MailShape
  /** HTTP clients or SMTP sessions. All keep their connections. */
  clients: number
  /** The number of domains, used round robin. */
  destinations: number
}

export async function benchOutbound(scope: Scope, plan: Plan): Promise<void> {
  await benchRelayed(scope, plan)
  await benchDirect(scope, plan)
}

/** Relays everything to one smarthost. */
async function benchRelayed(scope: Scope, plan: Plan): Promise<void> {
  const shapes = relayedShapes(plan).filter(({ title }) => wantsCase(plan, title))
  if (shapes.length === 0) return
  const folder = temporaryFolder(scope, 'relayed')
  const port = await freePort()
  const stage: Stage = { folder, onward: port, sink: { host: '127.0.0.1', port }, recipients: ['u@far.test'] }
  const entrants = await startRelays(scope, stage)
  await runShapes(plan, shapes, entrants, await startSink(scope, folder, { port }))
}

/** Sends to the mail servers of many domains. In DNS they are all the same sink. */
async function benchDirect(scope: Scope, plan: Plan): Promise<void> {
  const shapes = directShapes(plan).filter(({ title }) => wantsCase(plan, title))
  if (shapes.length === 0) return
  if (process.getuid?.() !== 0)
    return plan.print('outbound to several destinations: missing: only root can have port 25\n')
  const folder = temporaryFolder(scope, 'direct')
  const far = await startFarWorld(scope, Math.max(...shapes.map(({ destinations }) => destinations)))
  const stage: Stage = { folder, onward: 'mx', dns: far.dns, sink: far.sink, recipients: far.recipients }
  const entrants = await startRelays(scope, stage)
  await runShapes(plan, shapes, entrants, await startSink(scope, folder, far.sink))
}

export async function runShapes(
  plan: Plan,
  shapes: Shape[],
  entrants: Entrant<Relay>[],
  sink: Sink,
): Promise<void> {
  for (const entrant of entrants) if ('peer' in entrant) await warm(entrant.peer, sink, shapes[0]!, plan)
  for (const shape of shapes) {
    await runCase(plan, shape.title, entrants, (relay) => {
      const size = new LoadSize({ first: 200, targetMs: plan.targetMs, max: 40_000 })
      return () => measure(relay, sink, shape, size)
    })
  }
}

/** A program that has just started still compiles its code. After this many mails, or measurements, its speed is stable. */
const warmUp = { messages: 3_000, rounds: 3 }

async function warm(relay: Relay, sink: Sink, shape: Shape, { targetMs }: Plan): Promise<void> {
  const untilMs = performance.now() + warmUp.rounds * targetMs
  for (let sent = 0; sent < warmUp.messages && performance.now() < untilMs; sent += 200) {
    const before = sink.count()
    await relay.handIn(200, shape)
    await sink.reach(before + 200)
  }
  await relay.settle()
}

async function measure(relay: Relay, sink: Sink, shape: Shape, size: LoadSize): Promise<Sample> {
  const messages = size.count
  const result = await withCost(relay, async () => {
    const before = sink.count()
    const { startedAtMs, endedAtMs } = await relay.handIn(messages, shape)
    const reachedAtMs = await sink.reach(before + messages)
    return { messages, acceptedMs: endedAtMs - startedAtMs, elapsedMs: reachedAtMs - startedAtMs }
  })
  await relay.settle()
  size.observe(result.elapsedMs)
  return {
    'CPU µs/message': result.cpuUs,
    'at the sink/s': (messages / result.elapsedMs) * 1000,
    'accepted/s': (messages / result.acceptedMs) * 1000,
    ...result.wal,
  }
}

function relayedShapes(plan: Plan): Shape[] {
  const shape = (textBytes: number, clients: number, files: MailShape['files'] = 'none'): Shape => {
    const title = `outbound, ${nameOf({ textBytes, files })}, ${clients} clients, from handing in to the sink`
    return { title, mail: { textBytes, files }, clients, destinations: 1 }
  }
  const usual = [shape(5_000, 10), shape(5_000, 50), shape(100_000, 10), shape(5_000, 10, 'some')]
  return plan.extent === 'quick' && plan.caseName === null ? usual.slice(0, 1) : usual
}

function directShapes(plan: Plan): Shape[] {
  const mail = { textBytes: 5_000, files: 'none' } as const
  const shapes = [1, 20, 200].map((destinations) => {
    const where = destinations === 1 ? '1 destination' : `${destinations} destinations`
    return { title: `outbound, 5 KB, 50 clients, to ${where} by MX`, mail, clients: 50, destinations }
  })
  return plan.extent === 'quick' && plan.caseName === null ? shapes.slice(1, 2) : shapes
}
