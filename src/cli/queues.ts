// `posthorn queue …`: shows the mail that waits for each destination, and changes its queues.
import type { Command } from 'commander'
import { counted } from '../base/counted.ts'
import { ServiceError } from '../base/errors.ts'
import { cancelOrganization, cancelQueue, flushQueue, pauseQueue } from '../flow/delivering/end-deliveries.ts'
import { type TracedPool, tracePool } from '../flow/delivering/trace-sources.ts'
import { specialRoutes } from '../flow/route-policy.ts'
import type { Foundation } from '../foundation.ts'
import { parseDomain } from '../mail/address.ts'
import { trimDomain } from '../mail/domain-name.ts'
import { type AttemptRow, listLastAttempts } from '../store/sending/attempts.ts'
import { readConversation } from '../store/sending/conversation.ts'
import { listQueues, type QueueRow } from '../store/sending/routes.ts'
import { type OutputOptions, print, remark, table, withFoundation } from './context.ts'
import { inertLine } from './inert-text.ts'
import { requireUuid } from './organizations.ts'
import { sourceFacts, trace, traceHelp } from './queue-trace.ts'

const maxAttempts = 5

const queueHelp = `
A queue has the name of the domain that its mail goes to. Three queues are special: @local (mail for our own domains),
@relay (the smarthost of POSTHORN_DELIVERY=relay) and @capture (POSTHORN_DELIVERY=capture, as in development).
Mail whose sender asked for REQUIRETLS waits in requiretls:DOMAIN, and mail with the field "TLS-Required: No" in
anytls:DOMAIN. Mail of a pool of source addresses waits in POOL:DOMAIN. A pause of DOMAIN holds for all of them.`

export function addQueueCommands(program: Command): void {
  const queue = program
    .command('queue')
    .description('show and control delivery queues, one for each destination')
    .addHelpText('after', queueHelp)
  queue
    .command('list')
    .description('list queues that have mail, are paused, or have a fault')
    .option('--json', 'print JSON')
    .action(list)
  queue
    .command('show <domain>')
    .description('show one queue, with the last attempts of up to five waiting recipients')
    .option('--json', 'print JSON')
    .action(show)
  queue
    .command('trace <address>')
    .description('say what would happen to mail for an address, without sending any')
    .option('--org <id>', 'also check suppression and limits of this organization', requireUuid)
    .option('--json', 'print JSON')
    .option('--purpose <purpose>', 'as for mail of this purpose, which may have a pool of source addresses')
    .addHelpText('after', traceHelp)
    .action(trace)
  queue
    .command('pause <domain>')
    .description('start no more deliveries of a queue; mail that comes later waits too')
    .option('--json', 'print JSON')
    .action((domain, options) => pause(domain, 'paused', options))
  queue
    .command('resume <domain>')
    .description('resume a paused queue')
    .option('--json', 'print JSON')
    .action((domain, options) => pause(domain, 'running', options))
  queue
    .command('flush <domain>')
    .description('make waiting mail due now, regardless of its back-off')
    .option('--json', 'print JSON')
    .action(flush)
  queue
    .command('cancel [domain]')
    .description('cancel the waiting mail of a queue or an organization, with an event for each recipient')
    .option('--org <id>', 'cancel the waiting mail of this organization in every queue', requireUuid)
    .option('--json', 'print JSON')
    .action(cancel)
}

const head = ['QUEUE', 'WAITING', 'DELIVERING', 'STATE', 'NEXT ATTEMPT', 'LAST FAULT']

async function list(options: OutputOptions): Promise<void> {
  const queues = await withFoundation(options, ({ db }) => listQueues(db, null))
  print(options, { queues }, queues.length > 0 ? table(head, queues.map(cells)) : 'No mail is waiting.')
}

async function show(domain: string, options: OutputOptions): Promise<void> {
  const key = keyOf(domain)
  const { queue, found, pool } = await withFoundation(options, async ({ db, clock, deliveryRules }) => {
    const [[queue], found] = await Promise.all([listQueues(db, key), listLastAttempts(db, key, maxAttempts)])
    const providers = queue?.provider ? [queue.provider] : []
    return { queue, found, pool: await tracePool(db, deliveryRules().pools, { key, providers }, clock.now()) }
  })
  if (!queue)
    throw new ServiceError(
      'not_found',
      `there is no queue "${domain}"; "posthorn queue list" shows the existing ones`,
    )
  const attempts = found.map((row) => ({ ...row, conversation: readConversation(row.conversation) }))
  print(
    options,
    { ...queue, pool, attempts },
    [table(head, [cells(queue)]), ...limitsOf(queue), ...sourcesIn(pool), ...attempts.map(describe)].join(
      '\n\n',
    ),
  )
}

/** Formats the limits of the queue's group of destinations, if it was ever limited. */
function limitsOf({ group }: QueueRow): string[] {
  if (!group) return []
  const { name, connections, perMinute, perHour, pausedUntil, reason } = group
  const parts = [
    `up to ${counted(connections, 'connection')}`,
    perMinute === null ? null : `${counted(perMinute, 'message')} a minute`,
    perHour === null ? null : `${counted(perHour, 'message')} an hour`,
    pausedUntil === null ? null : `paused until ${new Date(pausedUntil).toISOString()}`,
    reason === null ? null : `last refused with ${reason}`,
  ]
  return [inertLine(`Limits of ${name}: ${parts.filter((part) => part !== null).join(', ')}`)]
}

function sourcesIn(pool: TracedPool | null): string[] {
  return pool
    ? [
        sourceFacts(pool)
          .map((fact) => inertLine(fact.join(' ')))
          .join('\n'),
      ]
    : []
}

type Attempt = Omit<AttemptRow, 'conversation'> & { conversation: ReturnType<typeof readConversation> }

/** Formats one attempt: its recipient, its server, and the conversation. */
function describe({ recipient, attempt, endedAt, remote, response, conversation }: Attempt): string {
  const from = remote?.source ? ` from ${remote.source}` : ''
  const server = remote ? `${remote.host} [${remote.ip}] ${remote.tls ?? 'without TLS'}${from}` : 'no server'
  const first = `${recipient}: attempt ${attempt}, ${endedAt.toISOString()}, ${server}`
  if (!conversation) return [first, ...(response ? [`  ${response}`] : [])].map(inertLine).join('\n')
  const steps = conversation.steps.map(({ command, atMs, code, enhancedStatus, text }) => {
    const reply = [code || null, enhancedStatus, text].filter((part) => part !== null).join(' ')
    return `${String(atMs).padStart(8)} ms  ${command.padEnd(8)}  ${reply}`
  })
  const opening = conversation.isReused ? ['  over a reused connection'] : []
  return [first, ...opening, ...steps].map(inertLine).join('\n')
}

function cells(row: QueueRow): string[] {
  const open = row.failures > 0 ? `blocked, ${counted(row.failures, 'failure')}` : 'running'
  const state = row.paused ? 'paused' : open
  const next = row.notBefore ?? row.oldestDueAt
  return [
    row.key,
    String(row.waiting),
    String(row.onWire),
    state,
    next?.toISOString() ?? '',
    row.lastFault ?? '',
  ]
}

async function pause(domain: string, state: 'paused' | 'running', options: OutputOptions): Promise<void> {
  const key = keyOf(domain)
  await withFoundation(options, async (foundation) => {
    await pauseQueue(foundation, key, state)
    if (state === 'paused') await warnOfOtherQueue(foundation, key, options)
  })
  print(options, { queue: key, state }, `${key} is ${state}`)
}

/** The key of the domain's queue. */
function keyOf(given: string): string {
  return parseDomain(trimDomain(given)) ?? given.toLowerCase()
}

/** Warns if the domain's mail uses another queue, because pausing this queue then holds no mail. */
async function warnOfOtherQueue(
  { db, settings }: Foundation,
  key: string,
  options: OutputOptions,
): Promise<void> {
  const { delivery } = settings
  if (delivery === 'direct' || key.includes('@')) return
  const [queue] = await listQueues(db, key)
  if (queue && queue.waiting > 0) return
  remark(
    options,
    `posthorn: with POSTHORN_DELIVERY=${delivery}, mail for ${key} waits in ${specialRoutes[delivery]}: to hold it, pause that queue`,
  )
}

const deliveries = (count: number) => counted(count, 'delivery', 'deliveries')

async function flush(domain: string, options: OutputOptions): Promise<void> {
  const key = keyOf(domain)
  const moved = await withFoundation(options, (foundation) => flushQueue(foundation, key))
  print(options, { queue: key, moved }, `${key}: ${deliveries(moved)} made due`)
}

async function cancel(
  domain: string | undefined,
  options: OutputOptions & { org?: string },
  command: Command,
): Promise<void> {
  const { org } = options
  if ((domain === undefined) === (org === undefined))
    return command.error('error: give either a queue, or an organization with --org')
  if (org !== undefined) return await cancelOf(org, options)
  const key = keyOf(domain!)
  const cancelled = await withFoundation(options, (foundation) => cancelQueue(foundation, key))
  print(options, { queue: key, cancelled }, `${key}: ${deliveries(cancelled)} cancelled`)
}

async function cancelOf(organization: string, options: OutputOptions): Promise<void> {
  const cancelled = await withFoundation(options, (foundation) =>
    cancelOrganization(foundation, organization),
  )
  print(options, { organization, cancelled }, `${organization}: ${deliveries(cancelled)} cancelled`)
}
