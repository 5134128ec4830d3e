// Posthorn as a black box: `bin/posthorn` in a temporary folder, with ports of its own, killed and started at will.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readlinkSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import pg from 'pg'
import { Api } from './api.ts'
import { ownProgram, run, runCommand } from './command.ts'
import { countStart } from './count-start.ts'
import { type Scope, until } from './until.ts'

export interface Posthorn {
  /** Base URLs without a trailing slash, and the SMTP address. They change with every start. */
  http: string
  operator: string
  smtp: { host: string; port: number }
  pid: number
  /** `POSTHORN_DATA_DIR`. */
  folder: string
  env: Record<string, string>
  /** Resolves once it is ready. Rejects with the end of its log if it ends before. */
  start(): Promise<void>
  /** Sends SIGKILL. Resolves once the process has ended. PostgreSQL keeps running. */
  kill9(): Promise<void>
  /** Sends SIGTERM. Resolves with the exit status once it has drained, and fails after 35 s. */
  stop(): Promise<number | null>
  isRunning(): boolean
  /** Runs a command with `--json`, in this process if possible, and returns its one document. Rejects unless it exits 0. */
  cli<Answer = Record<string, unknown>>(args: string[]): Promise<Answer>
  /** Sends SIGKILL to the embedded PostgreSQL's postmaster. Returns its pid, or null if none runs. */
  killPostgres(): number | null
  /** The pid of the embedded PostgreSQL's postmaster; null if none runs. */
  postgresPid(): number | null
  /** The connection of a test to the database, for counting only, never for changes. */
  database(): pg.ClientConfig
  /** The last lines of its log. */
  log(): string
}

interface Options {
  env?: Record<string, string>
  roles?: string
  /** Another `bin/posthorn`. */
  program?: string
}

/** Starts a service on a fresh data folder. The service, its PostgreSQL and its folder end with the scope. */
export async function startPosthorn(
  scope: Scope,
  { env = {}, roles, program = ownProgram }: Options = {},
): Promise<Posthorn> {
  const temporary = mkdtempSync(join(tmpdir(), 'posthorn-test-'))
  // If root runs the service, its embedded PostgreSQL runs as another user, who must be able to enter the folder.
  chmodSync(temporary, 0o755)
  const database = env['POSTHORN_DATABASE_URL'] ? null : await externalDatabase()
  const settings = {
    ...inherited(),
    POSTHORN_DATA_DIR: join(temporary, 'data'),
    POSTHORN_HTTP: '127.0.0.1:0',
    POSTHORN_OPERATOR: '127.0.0.1:0',
    POSTHORN_SMTP: '127.0.0.1:0',
    POSTHORN_SMTP_TRUSTED: '127.0.0.0/8',
    // No DNS server listens there, so every query fails at once and none leaves the machine.
    POSTHORN_DNS: '127.0.0.1:9',
    POSTHORN_LOG_FORMAT: 'json',
    ...(database ? { POSTHORN_DATABASE_URL: database.url } : {}),
    ...env,
  }
  if (!('POSTHORN_DATABASE_URL' in settings) && program === ownProgram)
    copyCluster(settings.POSTHORN_DATA_DIR)
  const posthorn = new BlackBox(temporary, settings, { program, args: roles ? ['--roles', roles] : [] })
  scope.after(async () => {
    if (posthorn.isRunning()) await posthorn.stop()
    const postgres = endPostgres(posthorn.folder, 'SIGINT')
    if (postgres) await until('PostgreSQL to end', () => folderOf(postgres) === null)
    await database?.drop()
    rmSync(temporary, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 })
  })
  await posthorn.start()
  return posthorn
}

/** Gives a data folder the cluster that the run made, because initdb costs half a second of processor time. */
function copyCluster(dataFolder: string): void {
  const cluster = process.env['POSTHORN_TEST_CLUSTER']
  const postgres = join(dataFolder, 'postgres')
  if (!cluster || existsSync(postgres)) return
  mkdirSync(postgres, { recursive: true, mode: 0o700 })
  execFileSync('cp', ['-a', cluster, postgres])
}

class BlackBox implements Posthorn {
  http = ''
  operator = ''
  smtp = { host: '', port: 0 }
  pid = 0
  readonly folder: string
  readonly env: Record<string, string>
  readonly #temporary: string
  readonly #program: string
  readonly #args: string[]
  #child: ChildProcess | null = null

  constructor(
    temporary: string,
    env: Record<string, string>,
    { program, args }: { program: string; args: string[] },
  ) {
    this.#temporary = temporary
    this.#program = program
    this.#args = args
    this.env = env
    this.folder = env['POSTHORN_DATA_DIR']!
  }

  async start(): Promise<void> {
    countStart()
    const logFile = openSync(join(this.#temporary, 'log'), 'a')
    const child = spawn(this.#program, ['serve', '--json', ...this.#args], {
      cwd: this.#temporary,
      env: this.env,
      stdio: ['ignore', 'pipe', logFile],
    })
    closeSync(logFile)
    this.#child = child
    this.pid = child.pid ?? 0
    const ready = await this.#readyLine(child)
    if (!ready) throw new Error(`posthorn ended before it was ready:\n${this.log()}`)
    const { http, operator, smtp } = ready
    this.http = http ?? ''
    this.operator = operator ?? ''
    const colon = smtp?.lastIndexOf(':') ?? 0
    if (smtp) this.smtp = { host: smtp.slice(0, colon), port: Number(smtp.slice(colon + 1)) }
  }

  async #readyLine(child: ChildProcess): Promise<Record<string, string | undefined> | null> {
    const lines = createInterface({ input: child.stdout! })
    const timer = setTimeout(() => child.kill('SIGKILL'), 60_000)
    try {
      for await (const line of lines) {
        const answer = JSON.parse(line)
        if (answer.event === 'ready') return answer
        throw new Error(`posthorn said on standard output what is not a ready line: ${line}`)
      }
      await gone(child)
      return null
    } finally {
      clearTimeout(timer)
      child.stdout!.resume()
    }
  }

  isRunning(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null
  }

  async kill9(): Promise<void> {
    this.#child?.kill('SIGKILL')
    if (this.#child) await gone(this.#child)
  }

  async stop(): Promise<number | null> {
    const child = this.#child
    if (!child || !this.isRunning()) return child?.exitCode ?? null
    let late = false
    const timer = setTimeout(() => {
      late = true
      child.kill('SIGKILL')
    }, 35_000)
    child.kill('SIGTERM')
    await gone(child)
    clearTimeout(timer)
    if (late) throw new Error(`posthorn had not ended 35 s after SIGTERM:\n${this.log()}`)
    return child.exitCode
  }

  async cli<Answer>(args: string[]): Promise<Answer> {
    const words = [...args, '--json']
    const { status, stdout, stderr } =
      this.#program === ownProgram
        ? await runCommand(words, this.env, this.#temporary)
        : await run(this.#program, words, this.env, this.#temporary)
    if (status !== 0) throw new Error(`posthorn ${args.join(' ')} ended with ${status}: ${stderr || stdout}`)
    return JSON.parse(stdout)
  }

  killPostgres(): number | null {
    return endPostgres(this.folder, 'SIGKILL')
  }

  postgresPid(): number | null {
    return findPostgres(this.folder)
  }

  database(): pg.ClientConfig {
    const url = this.env['POSTHORN_DATABASE_URL']
    if (url) return { connectionString: url }
    const file = join(this.folder, globSync('**/postmaster.pid', { cwd: this.folder })[0]!)
    // The fourth and fifth lines of the pid file are the port and the socket's folder, relative to the file.
    const lines = readFileSync(file, 'utf8').split('\n')
    const host = resolve(dirname(file), lines[4]!)
    return { host, port: Number(lines[3]), user: 'posthorn', database: 'posthorn' }
  }

  log(): string {
    return readFileSync(join(this.#temporary, 'log'), 'utf8').split('\n').slice(-30).join('\n')
  }
}

async function gone(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}

/** Path, home and locale of this run, without any Posthorn setting. */
export function inherited(): Record<string, string> {
  const names = ['PATH', 'HOME', 'LANG', 'TMPDIR', 'USER']
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])))
}

function endPostgres(folder: string, signal: NodeJS.Signals): number | null {
  const pid = findPostgres(folder)
  if (pid) process.kill(pid, signal)
  return pid
}

function findPostgres(folder: string): number | null {
  for (const file of globSync('**/postmaster.pid', { cwd: folder })) {
    const path = join(folder, file)
    const pid = Number(readFileSync(path, 'utf8').split('\n')[0])
    // A pid file outlives its postmaster, so only a process in this very folder counts.
    if (pid > 1 && folderOf(pid) === resolve(dirname(path))) return pid
  }
  return null
}

function folderOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    // No such process: the pid file is stale.
    return null
  }
}

async function externalDatabase(): Promise<{ url: string; drop(): Promise<void> } | null> {
  const server = process.env['POSTHORN_TEST_DATABASE_URL']
  if (!server) return null
  const name = `posthorn_box_${randomBytes(6).toString('hex')}`
  const ask = async (sql: string) => {
    const client = new pg.Client({ connectionString: server })
    await client.connect()
    await client.query(sql).finally(() => client.end())
  }
  await ask(`create database ${name}`)
  const url = new URL(server)
  url.pathname = `/${name}`
  return { url: url.href, drop: () => ask(`drop database if exists ${name} with (force)`) }
}

const unlimited = {
  messagesPerMinute: 10_000_000,
  messagesPerDay: 100_000_000,
  recipientsPerDay: 100_000_000,
  receivedMessagesPerDay: 100_000_000,
  receivedBytesPerDay: 2 ** 50,
  recipientsPerMessage: 1000,
  inboxes: 100_000,
  managedStarter: 100_000,
}

/** An active organization with the given limits (else unreachable ones), and an unrestricted key of its own. */
export async function createCaller(
  posthorn: Pick<Posthorn, 'cli' | 'http'>,
  limits: Partial<Record<keyof typeof unlimited, number>> = {},
): Promise<{ organizationId: string; keyId: string; secret: string; api: Api }> {
  const organization = await posthorn.cli<{ id: string }>(['org', 'create', '--name', 'Test', '--active'])
  const words = Object.entries({ ...unlimited, ...limits }).map(([name, value]) => `${name}=${value}`)
  await posthorn.cli(['org', 'limits', organization.id, ...words])
  const named = ['key', 'create', '--org', organization.id, '--name', 'test', '--scopes', '*']
  const key = await posthorn.cli<{ id: string; secret: string }>([
    ...named,
    '--requests-per-minute',
    '10000000',
  ])
  return {
    organizationId: organization.id,
    keyId: key.id,
    secret: key.secret,
    api: new Api(() => posthorn.http, key.secret),
  }
}
