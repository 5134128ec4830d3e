// The connection to PostgreSQL: prepared statements, transactions, and faults sorted by what the caller can do.
import pg from 'pg'
import { meters } from '../base/meters.ts'
import { Primary, urlsOfHosts } from './primary.ts'
import { Reads, readTimeoutMs, tookTooLong } from './reads.ts'
import { firstAnswerMs, type Session, setUpSession, statementTimeoutMs } from './session.ts'

/** Counts and sequence numbers stay below 2^53, so bigint columns are read as numbers. */
const readTypes = { getTypeParser: readType as typeof pg.types.getTypeParser }

function readType(oid: number, format?: 'text' | 'binary') {
  return oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format as 'text')
}

export interface DbOptions {
  /** A URL, which may name the hosts of a cluster, or the folder of a Unix socket with user and database. */
  connection: { connectionString: string } | { host: string; port: number; user: string; database: string }
  maxConnections?: number
}

/** A source of reads: the pool, or one open transaction. */
export interface Queryable {
  query<Row = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<Row[]>
}

declare const writing: unique symbol
declare const transaction: unique symbol

/** Sends a single statement that writes. Only flow/ and worker/ may take it from a `Db`. */
export interface Writer extends Queryable {
  readonly [writing]: true
}

/** An open transaction. Several writes need one. Only flow/ opens one. */
export interface Tx extends Writer {
  readonly [transaction]: true
}

/**
 * A failed statement. `lost`: the database is unreachable, or the connection broke, and the outcome may be unknown.
 * `conflict`: a deadlock or a serialization failure; running it once more may succeed. `damaged`: a page or a file of the
 * database is torn, so statements on other rows may succeed. `bad_row`: the values are at fault (SQLSTATE class 22 or 23).
 * `other`: our bug.
 */
export class DbFault extends Error {
  readonly kind: 'lost' | 'conflict' | 'damaged' | 'bad_row' | 'other'
  /** Whether the statement was sent and its outcome is unknown: it may be committed, now or later. */
  readonly isUnknown: boolean
  readonly sqlState: string | undefined
  readonly constraint: string | undefined

  constructor(
    cause: Error & { code?: string; constraint?: string },
    { wasSent = false }: { wasSent?: boolean } = {},
  ) {
    // When all of several addresses fail, Node's error has no message.
    super(cause.message || cause.code || 'no answer', { cause })
    this.name = 'DbFault'
    this.kind = faultKind(cause)
    this.isUnknown = wasSent && this.kind === 'lost' && !isAnswer(cause)
    this.sqlState = cause.code
    this.constraint = cause.constraint
  }
}

/**
 * A server that answers with an error has not committed. There are two exceptions. If it stops (57P), the statement may have
 * waited for a standby. PgBouncer reports a broken connection to the server (08).
 */
function isAnswer(cause: Error & { code?: string }): boolean {
  return cause instanceof pg.DatabaseError && !/^(?:57P|08)/.test(cause.code ?? '')
}

/** Returns whether the database is unreachable. Then the statement itself is not at fault. */
export function isLost(error: unknown): boolean {
  return error instanceof DbFault && error.kind === 'lost'
}

function faultKind({ code, message }: Error & { code?: string }): DbFault['kind'] {
  if (code === '40P01' || code === '40001') return 'conflict'
  if (code === 'XX001' || code === 'XX002') return 'damaged'
  if (/^(22|23)...$/.test(code ?? '')) return 'bad_row'
  // 08: connection; 53: resources; 55P03, 57014: lock and statement timeouts; 57P0x: shutting down; 58: system error;
  // 25P03: idle in transaction; 25006: a standby after a failover.
  if (/^(08|53|57P|58)|^(55P03|57014|25P03|25006)$/.test(code ?? '')) return 'lost'
  if (/^(E[A-Z]+|EAI_[A-Z]+|ERR_(STREAM|SOCKET)_[A-Z_]+)$/.test(code ?? '')) return 'lost'
  return /connection|timeout exceeded|read timeout|Client was closed|not queryable/i.test(message) && !code
    ? 'lost'
    : 'other'
}

/** For copying whole tables: no time limits, scans allowed, and one fixed text form of every value. */
const unlimited = `set statement_timeout = 0; set idle_in_transaction_session_timeout = 0; set enable_seqscan = on;
  set enable_hashjoin = on; set enable_mergejoin = on; set client_encoding = 'UTF8'; set bytea_output = 'hex';
  set datestyle = 'ISO'; set intervalstyle = 'postgres'; set extra_float_digits = 1; set timezone = 'UTC'`

/** A pool of connections to one database. */
export class Db implements Queryable {
  readonly #pool: pg.Pool
  /** Null: the URL names one server. */
  readonly #primary: Primary | null
  readonly #sessions = new WeakMap<pg.ClientBase, Session>()
  readonly #reads: Reads
  #noRoomAtMs = Number.NEGATIVE_INFINITY
  readonly writer = { query: (text, values) => this.query(text, values) } as Writer

  constructor({ connection, maxConnections = 16 }: DbOptions) {
    const urls = 'connectionString' in connection ? urlsOfHosts(connection.connectionString) : []
    this.#primary = urls.length > 1 ? new Primary(urls) : null
    this.#pool = new pg.Pool({
      ...connection,
      ...(this.#primary && { Client: this.#primary.Client }),
      max: maxConnections,
      types: readTypes,
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
      keepAliveInitialDelayMillis: 5_000,
      application_name: 'posthorn',
      onConnect: async (client) => {
        const { isReadOnly, ...session } = await setUpSession(client)
        if (this.#primary && isReadOnly) throw readOnlyFault()
        this.#sessions.set(client, session)
      },
    })
    // If an idle connection breaks, the next query opens another. If the fault lasts, that query gets it.
    this.#pool.on('error', () => {})
    // A connection that breaks within a transaction emits `error` once or twice, and the next statement gets the fault.
    // Without a listener the first event would end the service.
    this.#pool.on('connect', (client) => client.on('error', () => {}))
    // Reserves a quarter of the connections for writes, RCPT, filing and delivery.
    this.#reads = new Reads(Math.max(1, Math.floor((maxConnections * 3) / 4)))
  }

  /** Connections, and queries that wait for one. */
  get pool(): { busy: number; idle: number; waiting: number } {
    const { totalCount, idleCount, waitingCount } = this.#pool
    return { busy: totalCount - idleCount, idle: idleCount, waiting: waitingCount }
  }

  /** When the server last had no disk space for a statement, by `performance.now()`. */
  get noRoomAtMs(): number {
    return this.#noRoomAtMs
  }

  async query<Row = Record<string, unknown>>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return await this.#query<Row>(statementTimeoutMs, text, values)
  }

  /**
   * Returns a source of reads for one organization. Its statements wait for the organization's share of the connections.
   * A statement ends after 5 s, or once `signal` aborts, and then throws `unavailable`.
   */
  read(organizationId: string, signal?: AbortSignal): Queryable {
    return {
      query: (text, values = []) =>
        this.#reads.run(organizationId, signal, () => this.#readOnce(text, values, signal)),
    }
  }

  async #readOnce<Row>(
    text: string,
    values: readonly unknown[],
    signal: AbortSignal | undefined,
  ): Promise<Row[]> {
    try {
      return await this.#query<Row>(readTimeoutMs, text, values, signal)
    } catch (error) {
      throw error instanceof DbFault && error.sqlState === statementEnded ? tookTooLong() : error
    }
  }

  async #query<Row>(
    timeoutMs: number,
    text: string,
    values: readonly unknown[],
    signal?: AbortSignal,
  ): Promise<Row[]> {
    const startedMs = performance.now()
    const client = await this.#connect(timeoutMs)
    if (signal?.aborted) {
      client.release()
      throw tookTooLong()
    }
    try {
      return await this.#run<Row>(client, text, values, signal)
    } finally {
      meters.querySeconds.observe((performance.now() - startedMs) / 1000)
    }
  }

  /** Runs one statement and releases the connection. */
  async #run<Row>(
    client: pg.PoolClient,
    text: string,
    values: readonly unknown[],
    signal: AbortSignal | undefined,
  ): Promise<Row[]> {
    let isBroken = false
    const cancelled = cancelOn(signal, () => this.#cancel(client))
    try {
      return await this.#ask<Row>(client, text, values)
    } catch (error) {
      // A new connection also forgets prepared statements that a migration has made invalid. But on a full disk it may find
      // no room for its first file.
      isBroken = (error as DbFault).sqlState !== diskFull
      throw error
    } finally {
      // A late cancel must not end the connection's next statement.
      const wasCancelled = await cancelled()
      client.release(isBroken || wasCancelled)
    }
  }

  /**
   * Commits in the same way as acknowledged mail, without changing a row. Returns whether the commit took less than `ms`,
   * counted from getting a connection. Cancels it after `ms`: otherwise PostgreSQL would wait for a standby even if the
   * caller has gone.
   */
  async commitsWithin(ms: number): Promise<boolean> {
    const client = await this.dedicated()
    const signal = AbortSignal.timeout(ms)
    await this.#run(client, commit, [], signal)
    return !signal.aborted
  }

  /** Commits without changing a row. All that was visible before is then as durable as acknowledged mail. */
  async confirm(): Promise<void> {
    await this.query(commit)
  }

  async #ask<Row>(client: pg.PoolClient, text: string, values: readonly unknown[] = []): Promise<Row[]> {
    try {
      const { rows } = await client.query(statement(text, values))
      return rows as Row[]
    } catch (error) {
      const fault = new DbFault(error as Error, { wasSent: true })
      if (fault.sqlState === diskFull) this.#noRoomAtMs = performance.now()
      throw this.#noted(fault)
    }
  }

  /** Ends the connection's running statement. If the server cannot be reached, the statement's timeout ends it. */
  async #cancel(client: pg.PoolClient): Promise<void> {
    const { pid } = this.#sessions.get(client)!
    await this.query('select pg_cancel_backend($1)', [pid]).catch(() => {})
  }

  /** Returns a connection whose statements end after `timeoutMs`. */
  async #connect(timeoutMs: number): Promise<pg.PoolClient> {
    try {
      await this.#primary?.find()
      // Throws synchronously if a file that the URL names, such as `sslrootcert`, is missing.
      const client = await this.#pool.connect()
      const session = this.#sessions.get(client)!
      if (session.statementTimeoutMs !== timeoutMs) {
        const text = `set statement_timeout = ${timeoutMs}`
        await client.query({ text, query_timeout: firstAnswerMs } as pg.QueryConfig).catch((error) => {
          client.release(true)
          throw error
        })
        session.statementTimeoutMs = timeoutMs
      }
      return client
    } catch (error) {
      throw this.#noted(new DbFault(error as Error))
    }
  }

  /** A lost connection, or a read-only transaction, may mean that the primary has changed. */
  #noted(fault: DbFault): DbFault {
    if (fault.kind === 'lost') this.#primary?.doubt()
    return fault
  }

  /** Runs `work` in one transaction: commits when it resolves, rolls back when it rejects. */
  async transaction<Result>(work: (tx: Tx) => Promise<Result>): Promise<Result> {
    const client = await this.dedicated()
    const tx = { query: (text, values) => this.#ask(client, text, values) } as Tx
    let broken = false
    try {
      await tx.query('begin')
      const result = await work(tx)
      await tx.query('commit')
      return result
    } catch (error) {
      // After an unanswered statement, a rollback would not be answered either.
      if (isUnanswered(error)) broken = true
      else await tx.query('rollback').catch(() => (broken = true))
      throw error
    } finally {
      client.release(broken)
    }
  }

  /**
   * Runs `work` in a transaction that may take hours, on its own connection. Statements have no time limit. Commits
   * when `work` resolves; otherwise everything is rolled back.
   */
  async longTransaction<Result>(
    begin: 'begin' | 'begin isolation level repeatable read read only',
    work: (tx: Tx, client: pg.PoolClient) => Promise<Result>,
  ): Promise<Result> {
    const client = await this.dedicated()
    const tx = {
      query: (text, values = []) => client.query(text, [...values]).then(({ rows }) => rows),
    } as Tx
    try {
      await client.query(unlimited)
      await client.query(begin)
      const result = await work(tx, client)
      await client.query('commit')
      return result
    } catch (error) {
      throw error instanceof pg.DatabaseError || isConnectionLost(error) ? new DbFault(error as Error) : error
    } finally {
      client.release(true)
    }
  }

  /** Returns a connection for one caller, such as for session locks. The caller must release it. */
  async dedicated(): Promise<pg.PoolClient> {
    return await this.#connect(statementTimeoutMs)
  }

  async close(): Promise<void> {
    await this.#primary?.close()
    await this.#pool.end()
  }
}

const commit = `select pg_logical_emit_message(true, 'posthorn', '')`
const diskFull = '53100'
/** SQLSTATE `query_canceled`: by the statement timeout, or by `pg_cancel_backend`. */
const statementEnded = '57014'

/** Calls `cancel` once `signal` aborts. The returned function stops listening, awaits `cancel`, and returns whether it ran. */
function cancelOn(signal: AbortSignal | undefined, cancel: () => Promise<void>): () => Promise<boolean> {
  let cancelling: Promise<void> | null = null
  const abort = () => void (cancelling ??= cancel())
  signal?.addEventListener('abort', abort)
  return async () => {
    signal?.removeEventListener('abort', abort)
    await cancelling
    return cancelling !== null
  }
}

/** The error of PostgreSQL for a write in such a transaction. */
function readOnlyFault(): Error {
  return Object.assign(new Error('the server is read-only'), { code: '25006' })
}

/** Returns whether a new transaction would be read-only. On a standby PostgreSQL always says `on`. */
export async function isReadOnly(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ value: string }>(`select current_setting('transaction_read_only') as value`)
  return row!.value === 'on'
}

/**
 * Longer than PostgreSQL's own limit for a statement. If no answer comes by then, the server is stopped or unreachable,
 * and we give up the connection.
 */
const unansweredMs = statementTimeoutMs + 5_000

/** Makes a statement that is prepared once per connection. If it stays unanswered, the connection counts as lost. */
export function statement(
  text: string,
  values: readonly unknown[],
): pg.QueryConfig & { query_timeout: number } {
  return { name: statementName(text), text, values: [...values], query_timeout: unansweredMs }
}

function isConnectionLost(error: unknown): boolean {
  return error instanceof Error && /^Connection terminated|not queryable/.test(error.message)
}

function isUnanswered(error: unknown): boolean {
  return error instanceof DbFault && error.message === 'Query read timeout'
}

const names = new Map<string, string>()

/** Statements are constants of the program, so each is prepared once per connection. Beyond 500 they stay unnamed. */
function statementName(text: string): string | undefined {
  let name = names.get(text)
  if (!name && names.size < 500) names.set(text, (name = `s${names.size}`))
  return name
}
