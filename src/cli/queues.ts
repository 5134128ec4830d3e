// `posthorn queue …`: shows the mail that waits for each destination, and changes its queues.
import type { Command } from 'commander'
import { counted } from '../base/counted.ts'
import { ServiceError } from '../base/errors.ts'
import { cancelOrganization, cancelQueue, flushQueue, pauseQueue } from '../flow/delivering/end-deliveries.ts'
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

const maxAttempts = 5

const queueHelp = `
A queue bears the name of the domain that its mail goes to. Three are special: @local (our own domains),
@relay (the smarthost of POSTHORN_DELIVERY=relay) and @capture (development).`

export function addQueueCommands(program: Command): void {
  const queue = program
    .command('queue')
    .description('destination queues: what waits, and why')
    .addHelpText('after', queueHelp)
  queue
    .command('list')
    .description('queues with mail, paused ones, and those with a fault')
    .option('--json', 'print JSON')
    .action(list)
  queue
    .command('show <domain>')
    .description('one queue, and what was said in the last attempts of some that wait')
    .option('--json', 'print JSON')
    .action(show)
  queue
    .command('pause <domain>')
    .description('put nothing more of it on the wire, what comes later included')
    .option('--json', 'print JSON')
    .action((domain, options) => pause(domain, 'paused', options))
  queue
    .command('resume <domain>')
    .description('let it go on')
    .option('--json', 'print JSON')
    .action((domain, options) => pause(domain, 'running', options))
  queue
    .command('flush <domain>')
    .description('make what waits due at once, whatever its back-off')
    .option('--json', 'print JSON')
    .action(flush)
  queue
    .command('cancel [domain]')
    .description('give up what waits, in a queue or of an organization; its senders are told')
    .option('--org <id>', 'all that this organization has waiting, in whatever queue', requireUuid)
    .option('--json', 'print JSON')
    .action(cancel)
}

const head = ['QUEUE', 'WAITING', 'ON THE WIRE', 'STATE', 'NEXT TRY', 'LAST FAULT']

async function list(options: OutputOptions): Promise<void> {
  const queues = await withFoundation(options, ({ db }) => listQueues(db, null))
  print(options, { queues }, queues.length > 0 ? table(head, queues.map(cells)) : 'Nothing waits.')
}

async function show(domain: string, options: OutputOptions): Promise<void> {
  const key = keyOf(domain)
  const [[queue], found] = await withFoundation(options, ({ db }) =>
    Promise.all([listQueues(db, key), listLastAttempts(db, key, maxAttempts)]),
  )
  if (!queue)
    throw new ServiceError(
      'not_found',
      `there is no queue "${domain}"; "posthorn queue list" shows those there are`,
    )
  const attempts = found.map((row) => ({ ...row, conversation: readConversation(row.conversation) }))
  print(
    options,
    { ...queue, attempts },
    [table(head, [cells(queue)]), ...attempts.map(describe)].join('\n\n'),
  )
}

type Attempt = Omit<AttemptRow, 'conversation'> & { conversation: ReturnType<typeof readConversation> }

/** Formats one attempt: its recipient, its server, and the conversation. */
function describe({ recipient, attempt, endedAt, remote, response, conversation }: Attempt): string {
  const server = remote ? `${remote.host} [${remote.ip}] ${remote.tls ?? 'without TLS'}` : 'no server'
  const first = `${recipient}: attempt ${attempt}, ${endedAt.toISOString()}, ${server}`
  if (!conversation) return [first, ...(response ? [`  ${response}`] : [])].map(inertLine).join('\n')
  const steps = conversation.steps.map(({ command, atMs, code, enhancedStatus, text }) => {
    const reply = [code, enhancedStatus, text].filter((part) => part !== null).join(' ')
    return `${String(atMs).padStart(8)} ms  ${command.padEnd(8)}  ${reply}`
  })
  const opening = conversation.isReused ? ['  over a connection that had carried mail before'] : []
  return [first, ...opening, ...steps].map(inertLine).join('\n')
}

function cells(row: QueueRow): string[] {
  const open = row.failures > 0 ? `blocked, ${counted(row.failures, 'try', 'tries')}` : 'running'
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
  if (delivery === 'direct' || key.startsWith('@')) return
  const [queue] = await listQueues(db, key)
  if (queue && queue.waiting > 0) return
  remark(
    options,
    `posthorn: with POSTHORN_DELIVERY=${delivery} mail for ${key} waits in ${specialRoutes[delivery]}: pause that to hold it up`,
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
    return command.error('error: name either a queue or, with --org, an organization')
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
