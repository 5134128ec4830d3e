// Inbound, durable: how fast mail is acknowledged once it is on disk, and how fast it can then be read.
import type { Scope } from '../../tests/support/until.ts'
import { type SmtpLoad, sendBySmtp } from '../load/smtp.ts'
import { startHaraka } from '../peers/haraka.ts'
import { startPostfix } from '../peers/postfix.ts'
import { startPosthorn } from '../peers/posthorn.ts'
import { countInbox } from '../peers/posthorn-store.ts'
import { enter, type Plan, runCase, withCpu } from '../plan.ts'
import { LoadSize, type Sample } from '../rounds.ts'

type Shape = Pick<SmtpLoad, 'sessions' | 'sizeBytes' | 'connections'>

interface Receiver {
  port: number
  pids(): number[]
  /** Resolves with the time (milliseconds since the epoch) at which `messages` of this load could be read; null: it has no mailbox. */
  filed(messages: number): Promise<number | null>
  /** Checks what was filed, waits until nothing is left to do, and tidies up. */
  settle(): Promise<void>
}

export async function benchInbound(scope: Scope, plan: Plan): Promise<void> {
  const entrants = [
    await enter('Posthorn', () => receivePosthorn(scope)),
    await enter('Postfix', () => receivePostfix(scope)),
    await enter('Haraka + fsync', () => receiveHaraka(scope)),
  ]
  for (const shape of shapes(plan)) {
    await runCase(plan, titleOf(shape), entrants, (receiver) => {
      const size = new LoadSize({ first: 200, targetMs: plan.targetMs, max: 40_000 })
      return () => measure(receiver, shape, size)
    })
  }
}

async function measure(receiver: Receiver, shape: Shape, size: LoadSize): Promise<Sample> {
  const messages = size.count
  const result = await withCpu(receiver.pids, async () => {
    const startedMs = Date.now()
    const elapsedMs = await sendBySmtp({ ...shape, messages, port: receiver.port })
    const filedAtMs = await receiver.filed(messages)
    return { messages, elapsedMs, filedMs: filedAtMs === null ? null : filedAtMs - startedMs }
  })
  size.observe(result.elapsedMs)
  await receiver.settle()
  return {
    'accepted/s': (messages / result.elapsedMs) * 1000,
    ...(result.filedMs === null ? {} : { 'filed/s': (messages / result.filedMs) * 1000 }),
    'CPU µs/message': result.cpuUs,
  }
}

async function receivePosthorn(scope: Scope): Promise<Receiver> {
  const posthorn = await startPosthorn(scope)
  const counter = await countInbox(scope, posthorn)
  return {
    port: posthorn.smtpPort,
    pids: () => [...posthorn.servicePids(), ...posthorn.databasePids()],
    filed: counter.reach,
    settle: counter.verify,
  }
}

async function receivePostfix(scope: Scope): Promise<Receiver> {
  const postfix = await startPostfix(scope)
  return {
    port: postfix.port,
    pids: postfix.pids,
    filed: async (messages) => {
      await postfix.reach(messages)
      return Date.now()
    },
    settle: async () => {
      await postfix.idle()
      postfix.clear()
    },
  }
}

async function receiveHaraka(scope: Scope): Promise<Receiver> {
  const haraka = await startHaraka(scope)
  return { port: haraka.port, pids: haraka.pids, filed: async () => null, settle: async () => haraka.clear() }
}

function shapes(plan: Plan): Shape[] {
  const shape = (sizeBytes: number, sessions: number): Shape => ({
    sizeBytes,
    sessions,
    connections: 'per-message',
  })
  if (plan.extent === 'quick') return [shape(5000, 10)]
  return [
    ...[10, 1, 50].map((sessions) => shape(5000, sessions)),
    { ...shape(5000, 10), connections: 'kept' },
    ...[10, 1, 50].map((sessions) => shape(100_000, sessions)),
  ]
}

function titleOf({ sizeBytes, sessions, connections }: Shape): string {
  const reuse = connections === 'kept' ? 'connections kept' : 'one message per connection'
  return `inbound, ${sizeBytes / 1000} KB, ${sessions} session${sessions > 1 ? 's' : ''}, ${reuse}`
}
