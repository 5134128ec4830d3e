// Follows the primary of a PostgreSQL cluster that is named by several hosts, and ends the connections to its predecessor.
import pg from 'pg'
import { rest } from '../base/signal.ts'

/** How often the primary is asked whether it still takes writes: a frozen server breaks no connection. */
const askEveryMs = 5_000
/** How often all servers are asked while none takes writes. */
const searchEveryMs = 1_000
/** How long a server may take to answer. */
const answerMs = 3_000

/** Splits a URL in libpq's form with several hosts, `postgres://user@a:5432,b:5432/name`, into one URL for each host. */
export function urlsOfHosts(url: string): string[] {
  const [, scheme, user = '', hosts = '', rest] = /^(\w+:\/\/)([^/]*@)?([^/?#]*)(.*)$/s.exec(url) ?? []
  return scheme === undefined ? [url] : hosts.split(',').map((host) => `${scheme}${user}${host}${rest}`)
}

/** No server takes writes now. The message has the reason of each server. */
class NoPrimary extends Error {
  /** SQLSTATE `read_only_sql_transaction`, by which callers know that the statement is not at fault. */
  readonly code = '25006'
}

/** The primary of two or more servers. Close it to end its watch. */
export class Primary {
  readonly #urls: readonly string[]
  readonly #connections = new Map<pg.Client, string>()
  readonly #stop = new AbortController()
  readonly #watching: Promise<void>
  #url: string | null = null
  #search: Promise<void> | null = null

  constructor(urls: readonly string[]) {
    this.#urls = urls
    this.#watching = this.#watch()
  }

  /** The class of connections to the present primary. `find` must have resolved before. */
  get Client(): typeof pg.Client {
    const connectionString = () => this.#url!
    const note = (client: pg.Client, url: string) => this.#note(client, url)
    return class extends pg.Client {
      constructor(config: pg.ClientConfig) {
        const url = connectionString()
        super({ ...config, connectionString: url })
        note(this, url)
      }
    }
  }

  /** Resolves once the primary is known. Rejects if no server takes writes now. */
  async find(): Promise<void> {
    if (this.#url === null) await this.#searchOnce()
  }

  /** Searches for the primary again, because a connection failed or is read-only. */
  doubt(): void {
    void this.#searchOnce().catch(() => {})
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#watching
  }

  #note(client: pg.Client, url: string): void {
    this.#connections.set(client, url)
    client.once('end', () => this.#connections.delete(client))
  }

  async #watch(): Promise<void> {
    const { signal: stop } = this.#stop
    for (let isKnown = false; !stop.aborted; await rest(isKnown ? askEveryMs : searchEveryMs, stop))
      isKnown = await this.#searchOnce().then(
        () => true,
        () => false,
      )
  }

  /** One search at a time. Rejects with `NoPrimary`. */
  async #searchOnce(): Promise<void> {
    this.#search ??= this.#searchAll().finally(() => (this.#search = null))
    await this.#search
  }

  /** The present primary stays unless it fails, so that two servers that both take writes do not alternate. */
  async #searchAll(): Promise<void> {
    const present = this.#url
    if (present !== null && (await faultOf(present)) === null) return
    const faults: string[] = []
    const answers = this.#urls.map(async (url) => {
      const fault = await faultOf(url)
      if (fault === null) return url
      faults.push(fault)
      throw new Error(fault)
    })
    const found = await Promise.any(answers).catch(() => null)
    if (found === null) throw new NoPrimary(`no server takes writes: ${[...new Set(faults)].join('; ')}`)
    this.#url = found
    for (const [client, url] of this.#connections) if (url !== found) cut(client)
  }
}

/** Why a server cannot be the primary, or null. */
async function faultOf(url: string): Promise<string | null> {
  const limits = { connectionTimeoutMillis: answerMs, query_timeout: answerMs }
  try {
    // Throws synchronously if a file that the URL names is missing.
    const client = new pg.Client({ connectionString: url, ...limits, application_name: 'posthorn' })
    client.on('error', () => {})
    try {
      await client.connect()
      const { rows } = await client.query(`select current_setting('transaction_read_only') as value`)
      return rows[0].value === 'on' ? 'it is a standby, or read-only' : null
    } finally {
      cut(client)
    }
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException
    return message || code || 'no answer'
  }
}

/** Ends a connection without waiting for its server. Its running statement rejects as on any broken connection. */
function cut(client: pg.Client): void {
  const { connection } = client as unknown as { connection: { stream: { destroy(): void } } }
  connection.stream.destroy()
}
