// Starts, adopts or makes the embedded PostgreSQL. All its users share it, and the last one stops it.
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import type { Log } from '../../base/log.ts'
import { OutageLog } from '../../base/outage-log.ts'
import { lockClasses } from '../locks.ts'
import { majorVersion, prepareCluster } from './cluster.ts'
import { prepareDirectory, type ServerDirectory, shortSocketFolder } from './directory.ts'
import { EmbeddedError } from './embedded-error.ts'
import { boundLog } from './log-file.ts'
import { findPostmaster, parseLock, Start, stopPostmaster } from './postmaster.ts'
import { superuser } from './settings.ts'

export interface EmbeddedConnection {
  /** The folder of the unix socket, short enough to connect by. */
  host: string
  port: number
  user: string
  database: string
  ssl: false
}

export interface EmbeddedServer {
  /** Options for `pg`. They stay valid when PostgreSQL is restarted. */
  connection: EmbeddedConnection
  /** Gives up our share. PostgreSQL stops if no other share is left. Close other connections first. */
  release(): Promise<void>
}

export interface EmbeddedOptions {
  /** The folder that holds everything of this PostgreSQL: `<data>/postgres`. */
  directory: string
  log: Log
  /** Called before a step that takes longer than a moment, with a line to show to people. */
  progress?: (line: string) => void
}

/** We give up after this long without an answer, such as from a hung postmaster or the orphans of a killed one. */
const silenceLimitMs = 30_000
/** After a drain of up to 30 s, we wait this long for the last checkpoint. PostgreSQL ends a longer one without us. */
const stopLimitMs = 10_000
const pollMs = 20
const retryMs = 100

/**
 * Starts the PostgreSQL of `directory`, or adopts the running one, or makes a new one first. Resolves once it accepts
 * connections. PostgreSQL survives a sudden death of this process. If PostgreSQL dies while we have a share, we start it
 * again. Throws `EmbeddedError`, with a remedy, if the folder cannot be used.
 */
export async function useEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const server = await prepareDirectory(options.directory)
  const progress = options.progress ?? (() => {})
  await prepareCluster(server, progress)
  const folder = await shortSocketFolder(server.socket)
  const share = new Share(server, folder.path, options.log)
  try {
    await share.acquire(progress)
    await share.createDatabase()
  } catch (error) {
    await share.release()
    await folder.remove()
    throw error
  }
  return {
    connection: connectionTo(folder.path, superuser),
    release: async () => {
      await share.release()
      await folder.remove()
    },
  }
}

function connectionTo(host: string, database: string): EmbeddedConnection {
  return { host, port: 5432, user: superuser, database, ssl: false }
}

/** Our share in a PostgreSQL: a shared lock in its own session, taken again if that session is lost. */
class Share {
  readonly #server: ServerDirectory
  readonly #host: string
  readonly #log: Log
  readonly #outage: OutageLog
  readonly #bounding: NodeJS.Timeout
  #client: pg.Client | null = null
  #renewal: Promise<void> = Promise.resolve()
  #released: Promise<void> | null = null

  constructor(server: ServerDirectory, host: string, log: Log) {
    this.#server = server
    this.#host = host
    this.#log = log
    this.#outage = new OutageLog({ log, work: 'PostgreSQL' })
    this.#bounding = setInterval(() => void boundLog(server.log), 60_000).unref()
  }

  /** Connects to the server, starts it as often as necessary, and takes the lock. */
  async acquire(progress: (line: string) => void): Promise<void> {
    await boundLog(this.#server.log)
    const { client, started } = await this.#reach(progress)
    this.#client = client
    client.once('end', () => this.#renew(client))
    this.#log.debug(
      { directory: this.#server.directory },
      started ? 'PostgreSQL started' : 'PostgreSQL adopted',
    )
  }

  /** Creates the service's database if it is missing. */
  async createDatabase(): Promise<void> {
    const found = await this.#client!.query('select from pg_database where datname = $1', [superuser])
    if (found.rowCount) return
    await this.#client!.query(`create database ${superuser}`).catch((error) => {
      // 42P04, 23505: another start created it at the same moment.
      if (error.code !== '42P04' && error.code !== '23505') throw error
    })
  }

  /** Releases the lock, and stops the server if no one else holds the lock. Safe to call twice. */
  release(): Promise<void> {
    this.#released ??= this.#leave()
    return this.#released
  }

  async #leave(): Promise<void> {
    clearInterval(this.#bounding)
    await this.#renewal
    const client = this.#client
    this.#client = null
    if (!client) return
    try {
      // Unlock first: if two leave at once, each would see the other's share, and neither would stop the server.
      await client.query('select pg_advisory_unlock_shared($1)', [lockClasses.embedded])
      const { rows } = await client.query('select pg_try_advisory_lock($1) as alone', [lockClasses.embedded])
      if (rows[0].alone && !(await stopPostmaster(this.#server.cluster, stopLimitMs))) {
        this.#log.warn({ limitMs: stopLimitMs }, 'PostgreSQL is still writing its last checkpoint')
      }
    } catch (error) {
      this.#log.debug({ err: error }, 'PostgreSQL ended before we disconnected')
    }
    await client.end().catch(() => {})
  }

  #renew(lost: pg.Client): void {
    if (this.#released || this.#client !== lost) return
    this.#client = null
    this.#log.warn('connection that keeps PostgreSQL running was lost; reconnecting')
    this.#renewal = this.#retryAcquire()
  }

  async #retryAcquire(): Promise<void> {
    for (let waitMs = 100; !this.#released; waitMs = Math.min(waitMs * 2, 5000)) {
      try {
        await this.acquire(() => {})
        return this.#outage.succeed()
      } catch (error) {
        if (this.#released) return
        this.#outage.fail(error)
        await pause(waitMs)
      }
    }
  }

  async #reach(progress: (line: string) => void): Promise<{ client: pg.Client; started: boolean }> {
    let start: Start | null = null
    let answeredMs = performance.now()
    for (;;) {
      if (this.#released) throw new EmbeddedError('PostgreSQL was released while it was restarting')
      const postmaster = await findPostmaster(this.#server.cluster)
      const answer = postmaster?.isReady ? await this.#connect() : postmaster && 'busy'
      if (answer instanceof pg.Client) return { client: answer, started: start !== null }
      if (answer === 'busy') answeredMs = performance.now()
      if (await start?.mayRetry()) {
        start = null
        await pause(retryMs)
        continue
      }
      if (!postmaster && !start) {
        progress('starting PostgreSQL')
        start = await Start.begin(this.#server)
      }
      if (performance.now() - answeredMs > silenceLimitMs) throw this.#silence()
      await pause(pollMs)
    }
  }

  #silence(): EmbeddedError {
    const seconds = silenceLimitMs / 1000
    return new EmbeddedError(
      `PostgreSQL in ${this.#server.directory} did not answer for ${seconds} s: see ${this.#server.log}, and end its remaining processes ('ps -C postgres')`,
    )
  }

  /** Returns a session with the lock; `busy` while the server starts, recovers or stops; null if ours does not answer. */
  async #connect(): Promise<pg.Client | 'busy' | null> {
    const client = new pg.Client({
      ...connectionTo(this.#host, 'postgres'),
      connectionTimeoutMillis: 10_000,
      application_name: 'posthorn share',
    })
    // A lost session emits `end`. Without a listener its `error` would end the process.
    client.on('error', () => {})
    try {
      await client.connect()
      // Waits if the last user holds the exclusive lock and is stopping the server. The stop then ends this session too.
      await client.query('select pg_advisory_lock_shared($1)', [lockClasses.embedded])
      if (await this.#isOurs(client)) return client
      await client.end()
      return null
    } catch (error) {
      await client.end().catch(() => {})
      // 57P03: starting, recovering or stopping. 57P01: the server stopped during this call.
      const { code, message } = error as Error & { code?: string }
      // 28000: the access rules of that start do not include us.
      if (code === '28000')
        throw new EmbeddedError(
          `PostgreSQL in ${this.#server.directory} was started by another user (${message}): run as that user`,
        )
      return code === '57P03' || code === '57P01' ? 'busy' : null
    }
  }

  /** Returns whether the version and lock file of the server that answers are those of our folder. */
  async #isOurs(client: pg.Client): Promise<boolean> {
    const { rows } = await client.query(
      "select current_setting('server_version') as version, pg_read_file('postmaster.pid') as lock",
    )
    const theirs = parseLock(rows[0].lock)
    const ours = await findPostmaster(this.#server.cluster)
    const sameRun = theirs !== null && theirs.pid === ours?.pid && theirs.started === ours.started
    return sameRun && rows[0].version.startsWith(`${majorVersion}.`)
  }
}
