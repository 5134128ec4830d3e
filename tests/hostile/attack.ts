// The parts of an attack and its measurements: memory, the event loop, and the time until mail has arrived.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import type { Acceptance, Api, Inbox } from '../support/api.ts'
import { DnsServer, type ZoneRecords } from '../support/dns-server.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { type Scope, until } from '../support/until.ts'

/** The result of an attack: the observations, and whether the service withstood it. */
export interface Outcome {
  now: string
  held: boolean
}

export interface Attack {
  name: string
  /** The result before the defence existed, measured by this very attack if the text says so. */
  before: string
  run(scope: Scope): Promise<Outcome>
}

/** A service that delivers directly, a healthy destination, and two tenants. */
export interface Stage {
  posthorn: Posthorn
  dns: DnsServer
  /** `healthy.test`. */
  healthy: Sink
  attacker: Api
  victim: Api
}

export async function setStage(scope: Scope, env: Record<string, string> = {}): Promise<Stage> {
  const healthy = await startSink(scope, { host: '127.0.0.3' })
  const dns = await DnsServer.start({
    'healthy.test': mx('mx.healthy.test'),
    'mx.healthy.test': { A: [healthy.host] },
  })
  scope.after(() => dns.close())
  const posthorn = await startPosthorn(scope, {
    env: {
      POSTHORN_DELIVERY: 'direct',
      POSTHORN_DNS: dns.address,
      POSTHORN_MX_PORT: String(healthy.port),
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
      POSTHORN_MANAGED_DOMAIN: 'inbox.test',
      ...env,
    },
  })
  const [attacker, victim] = [await createCaller(posthorn), await createCaller(posthorn)]
  return { posthorn, dns, healthy, attacker: attacker.api, victim: victim.api }
}

export function mx(host: string): ZoneRecords {
  return { MX: [[10, host]] }
}

/** Sends one message from the inbox, which must be accepted. */
export async function send(
  api: Api,
  inbox: Inbox,
  to: string[],
  body: Record<string, unknown> = { text: 'Hello.' },
): Promise<Acceptance> {
  return await api.want(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    status: 202,
    idempotencyKey: randomUUID(),
    body: { to: to.map((email) => ({ email })), subject: 'Test', ...body },
  })
}

/** Milliseconds until `condition` holds; null if it does not within `limitMs`. */
export async function timeUntil(condition: () => unknown, limitMs = 20_000): Promise<number | null> {
  const startMs = performance.now()
  try {
    await until('the condition', async () => Boolean(await condition()), { timeoutMs: limitMs, everyMs: 10 })
    return performance.now() - startMs
  } catch {
    return null
  }
}

/** Milliseconds until a message of the tenant has arrived: in an inbox of its own, and at the healthy destination. */
export async function measureDelivery({ healthy, victim }: Pick<Stage, 'healthy' | 'victim'>) {
  const [inbox, other] = [await victim.createInbox(), await victim.createInbox()]
  const received = async () => {
    const { messages } = await victim.want<{ messages: unknown[] }>(
      `/v1/inboxes/${other.id}/messages?direction=inbound`,
    )
    return messages.length > 0
  }
  await send(victim, inbox, [other.address])
  const localMs = await timeUntil(received)
  const { message } = await send(victim, inbox, ['somebody@healthy.test'])
  const healthyMs = await timeUntil(() => healthy.copiesOf(message.internetMessageId)[0])
  return { localMs, healthyMs }
}

export function inMs(ms: number | null): string {
  return ms === null ? 'not within 20 s' : `${Math.round(ms)} ms`
}

/** Runs `work`. Returns the peak growth of the process's resident memory in MB. */
export async function memoryDuring(pid: number, work: () => Promise<unknown>): Promise<number> {
  const idle = residentMb(pid)
  let most = idle
  const timer = setInterval(() => (most = Math.max(most, residentMb(pid))), 25)
  try {
    await work()
  } finally {
    clearInterval(timer)
  }
  return Math.round(Math.max(most, residentMb(pid)) - idle)
}

export function residentMb(pid: number): number {
  const [, kilobytes = '0'] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) / 1024
}

/** Runs `work`. Returns the longest stall of the service's event loop meanwhile, in milliseconds, by its own metrics. */
export async function stallDuring(posthorn: Posthorn, work: () => Promise<unknown>): Promise<number> {
  await readStall(posthorn)
  await work()
  return await readStall(posthorn)
}

/** The longest stall since the last read. */
async function readStall({ operator }: Posthorn): Promise<number> {
  const text = await (await fetch(`${operator}/metrics`)).text()
  const [, seconds = 'NaN'] = /^nodejs_eventloop_lag_max_seconds (\S+)/m.exec(text) ?? []
  return Math.round(Number(seconds) * 1000)
}

/** Waits until the service is idle, so that the next measurement is the attack's. */
export async function settle(): Promise<void> {
  await pause(1000)
}
