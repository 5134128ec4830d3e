// An external PostgreSQL for tests that depend on its settings, its address or its replication.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { chooseOwner, type Owner } from '../../src/postgres/embedded/owner.ts'
import { locateSoftware } from '../../src/postgres/embedded/software.ts'
import { freePort } from './free-port.ts'
import { type Scope, until } from './until.ts'

const execute = promisify(execFile)

/** An external PostgreSQL 15 or later with a password. It can be restarted with other settings any number of times. */
export class ExternalServer {
  readonly folder: string
  readonly owner: Owner | null
  /** Further environment of the next start. */
  env: Record<string, string> = {}
  readonly #bin: string
  #port = 5432
  #pid: number | null = null
  #stop: () => Promise<void> = async () => {}

  private constructor(folder: string, owner: Owner | null, bin: string) {
    this.folder = folder
    this.owner = owner
    this.#bin = bin
  }

  static async make(t: Scope): Promise<ExternalServer> {
    const server = await ExternalServer.#prepare(t)
    const words = [
      ...['-D', join(server.folder, 'cluster'), '-U', 'posthorn', '-A', 'trust', '--no-sync'],
      ...['-E', 'UTF8', '--locale=C'],
    ]
    await server.#execute('initdb', words)
    return server
  }

  /** A copy of this running server, which follows it once it is started. */
  async makeStandby(t: Scope): Promise<ExternalServer> {
    const standby = await ExternalServer.#prepare(t)
    const words = ['-D', join(standby.folder, 'cluster'), '-U', 'posthorn', '-R', '--no-sync', '-c', 'fast']
    await standby.#execute('pg_basebackup', [...words, '-h', this.folder, '-p', String(this.#port)])
    return standby
  }

  static async #prepare(t: Scope): Promise<ExternalServer> {
    const folder = mkdtempSync('/tmp/posthorn-pg-')
    const owner = await chooseOwner(folder)
    const debian = '/usr/lib/postgresql/15/bin'
    const bin = existsSync(debian) ? debian : join(await locateSoftware(folder, owner), 'bin')
    const server = new ExternalServer(folder, owner, bin)
    t.after(async () => {
      await server.#stop()
      rmSync(folder, { recursive: true, force: true })
    })
    if (owner) chownSync(folder, owner.uid, owner.gid)
    return server
  }

  async #execute(program: string, words: string[]): Promise<void> {
    await execute(join(this.#bin, program), words, { ...this.owner, cwd: '/' })
  }

  /** Stops the former server, starts one and returns its URL. */
  async start(...settings: string[]): Promise<string> {
    await this.#stop()
    const own = ['listen_addresses=', `unix_socket_directories=${this.folder}`, ...settings]
    const words = ['-D', join(this.folder, 'cluster'), ...own.flatMap((setting) => ['-c', setting])]
    this.#port = Number(settings.find((setting) => setting.startsWith('port='))?.slice(5) ?? 5432)
    const env = { ...process.env, ...this.env }
    const child = spawn(join(this.#bin, 'postgres'), words, { ...this.owner, env, cwd: '/', stdio: 'ignore' })
    this.#pid = child.pid!
    this.#stop = async () => {
      this.thaw()
      child.kill('SIGINT')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    }
    await until('PostgreSQL to answer', () => this.ask('select 1').catch(() => null))
    return `postgres://posthorn:horn%2Fsecret@localhost/postgres?host=${this.folder}`
  }

  /** The same over TCP. */
  async startOnTcp(...settings: string[]): Promise<string> {
    const port = await freePort()
    await this.start(`port=${port}`, 'listen_addresses=127.0.0.1', ...settings)
    return `postgres://posthorn:horn%2Fsecret@127.0.0.1:${port}/postgres`
  }

  async stop(): Promise<void> {
    await this.#stop()
  }

  /** Stops all processes of the server. They answer nothing, and their connections stay open. */
  freeze(): void {
    this.#signal('SIGSTOP')
  }

  thaw(): void {
    this.#signal('SIGCONT')
  }

  /** Signals the postmaster and its children. */
  #signal(signal: NodeJS.Signals): void {
    if (this.#pid === null || !existsSync(`/proc/${this.#pid}`)) return
    const children = readFileSync(`/proc/${this.#pid}/task/${this.#pid}/children`, 'utf8')
    for (const pid of [this.#pid, ...children.split(' ').filter(Boolean).map(Number)])
      try {
        process.kill(pid, signal)
      } catch (error) {
        // A child may end by itself after it was listed.
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
      }
  }

  /** The same as a standby without a primary. */
  async startAsStandby(): Promise<string> {
    await this.#stop()
    writeFileSync(join(this.folder, 'cluster/standby.signal'), '')
    return await this.start()
  }

  async ask(sql: string): Promise<Record<string, unknown>[]> {
    const client = new pg.Client({
      host: this.folder,
      port: this.#port,
      user: 'posthorn',
      database: 'postgres',
    })
    client.on('error', () => {})
    await client.connect()
    return await client
      .query(sql)
      .then(({ rows }) => rows)
      .finally(() => client.end())
  }
}
