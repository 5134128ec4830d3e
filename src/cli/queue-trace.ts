// `posthorn queue trace ADDRESS`: what would happen to mail for the address, without sending any.
import { counted } from '../base/counted.ts'
import {
  type Trace,
  type TracedHost,
  type TracedSender,
  traceDelivery,
} from '../flow/delivering/trace-delivery.ts'
import type { TracedPool, TracedSource } from '../flow/delivering/trace-sources.ts'
import { openTracing } from '../roles/tracing.ts'
import { type OutputOptions, print, table, withFoundation } from './context.ts'

export const traceHelp = `
Reads DNS, and the MTA-STS policy if it must be fetched, as a delivery would. Opens no connection to a mail server and
stores nothing. With --org, also says whether that organization may send to the address now. Exit status 0 if mail would
be sent now, otherwise 1.`

interface TraceOptions extends OutputOptions {
  org?: string
  purpose?: string
}

export async function trace(address: string, options: TraceOptions): Promise<void> {
  const found = await withFoundation(options, async (foundation) => {
    const { deps, close } = openTracing(foundation)
    try {
      const { org: organizationId, purpose } = options
      return await traceDelivery(deps, { email: address, organizationId, purpose })
    } finally {
      await close()
    }
  })
  print(options, found, describe(found))
  if (found.outcome !== 'sent') options.terminal.exitStatus = 1
}

const hops = {
  mx: 'the mail servers of its domain',
  own: 'our own mail server',
  relay: 'the smarthost',
  capture: 'the capture server: it does not leave this deployment',
} as const

const outcomes = {
  sent: 'would be sent now',
  waits: 'would wait',
  fails: 'would fail at once',
  refused: 'would not be accepted',
} as const

function describe(found: Trace): string {
  const { recipient, route, sender, queue, hosts, furtherHosts, outcome, reasons } = found
  const facts: [string, string][] = [
    ['route', `queue ${route.queue}, to ${hops[route.nextHop]}`],
    ['queue', queue ? stateOf(queue) : 'does not exist yet'],
    ...(sender ? senderFacts(sender) : []),
    ...policyFacts(found),
  ]
  const lines = [...facts, ...sourceFacts(found.pool)].map(
    ([name, words]) => `  ${name.padEnd(12)}  ${words}`,
  )
  const asked = hosts.length > 0 ? ['', table(head, hosts.map(cells))] : []
  const further = furtherHosts > 0 ? [`and ${counted(furtherHosts, 'further mail server')}`] : []
  const conclusion = [
    `Mail ${outcomes[outcome]}${reasons.length > 0 ? ':' : '.'}`,
    ...reasons.map((one) => `  ${one}`),
  ]
  return [recipient, ...lines, ...asked, ...further, '', ...conclusion].join('\n')
}

function stateOf({ paused, failures, waiting, onWire }: NonNullable<Trace['queue']>): string {
  const state = paused ? 'paused' : failures > 0 ? `blocked, ${counted(failures, 'failure')}` : 'running'
  return `${state}, ${waiting} waiting, ${onWire} in delivery`
}

function senderFacts({ name, status, suppression, limits }: TracedSender): [string, string][] {
  const used = limits.map(({ name: limit, used, limit: max }) => `${limit} ${used} of ${max}`).join(', ')
  return [
    ['organization', `${name} (${status})`],
    [
      'suppressed',
      suppression ? `${suppression.reason}, since ${suppression.createdAt.toISOString()}` : 'no',
    ],
    ['limits', used],
  ]
}

function policyFacts({ mtaSts }: Trace): [string, string][] {
  if (!mtaSts) return []
  const { policy, fault } = mtaSts
  const words = policy ? [policy.mode, ...policy.mx].join(' ') : 'no policy'
  return [['MTA-STS', fault === null ? words : `${words} (not fetched: ${fault})`]]
}

/** The sources of the queue's pool. `queue show` prints them too. */
export function sourceFacts(pool: TracedPool | null): [string, string][] {
  return (pool?.sources ?? []).map(({ address, ehlo, warmUp, limits }) => {
    const parts = [
      `${address}, ${ehlo}`,
      ...(warmUp ? [`warm-up: ${warmUp.sent} of ${warmUp.perDay} messages in 24 hours`] : []),
      ...limits.map(describeLimits),
    ]
    return [`from ${pool!.name}`, parts.join('; ')]
  })
}

function describeLimits({ name, connections, pausedUntil, reason }: TracedSource['limits'][number]): string {
  const pause = pausedUntil === null ? '' : `, paused until ${pausedUntil.toISOString()}`
  return `${name}: up to ${counted(connections, 'connection')}${pause}, last refused with ${reason}`
}

const head = ['HOST', 'ADDRESS', 'PORT', 'FROM', 'TLS', 'REFUSED']

function cells({ host, address, port, source, tls, refusal }: TracedHost): string[] {
  return [host, address, String(port), source ?? 'no way', tls, refusal ?? '']
}
