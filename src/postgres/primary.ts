// Follows the primary of a PostgreSQL cluster that is named by several hosts, and ends the connections to its predecessor.
import pg from 'pg'
import { rest, Signal } from '../base/signal.ts'

/** How often the primary is asked whether it still takes writes: a frozen server breaks no connection. */
const askEveryMs = 5_000
/** How long after a search without a result all servers are asked again. */
const searchAgainMs = 1_000
/** The shortest time between two searches, however many connections fail. */
const searchGapMs = 250
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

/** A server that takes writes, and its timeline, whose number grows with each promotion. */
interface Answer {
  url: string
  timeline: number
}

/** The primary of two or more servers. Close it to end its watch. */
export class Primary {
  readonly #urls: readonly string[]
  readonly #connections = new Map<pg.Client, string>()
  readonly #asking = new Set<pg.Client>()
  readonly #stop = new AbortController()
  readonly #doubt = new Signal()
  readonly #watching: Promise<void>
  /** Settles with the search under way, or with the next one. */
  #searched = newSearch()
  #present: Answer | null = null
  /** Whether the last search had a result. */
  #isKnown = false

  constructor(urls: readonly string[]) {
    this.#urls = urls
    this.#watching = this.#watch()
  }

  /** The class of connections to the present primary. `find` must have resolved before. */
  get Client(): typeof pg.Client {
    const present = () => this.#present!.url
    const note = (client: pg.Client, url: string) => this.#note(client, url)
    return class extends pg.Client {
      constructor(config: pg.ClientConfig) {
        const url = present()
        super({ ...config, connectionString: url })
        note(this, url)
      }
    }
  }

  /** Resolves once the primary is known. Rejects if the next search finds no server that takes writes. */
  async find(): Promise<void> {
    if (this.#isKnown) return
    this.#doubt.wake()
    await this.#searched.promise
  }

  /** Asks the primary again soon, because a connection failed or is read-only. */
  doubt(): void {
    this.#doubt.wake()
  }

  async close(): Promise<void> {
    this.#stop.abort()
    this.#endAsking()
    await this.#watching
  }

  #note(client: pg.Client, url: string): void {
    this.#connections.set(client, url)
    client.once('end', () => this.#connections.delete(client))
  }

  async #watch(): Promise<void> {
    const { signal: stop } = this.#stop
    while (!stop.aborted) {
      const fault = await this.#search()
      this.#isKnown = fault === null
      const { resolve, reject } = this.#searched
      this.#searched = newSearch()
      if (fault === null) resolve()
      else reject(new NoPrimary(`no server takes writes: ${fault}`))
      await rest(searchGapMs, stop)
      await this.#doubt.wait(this.#isKnown ? askEveryMs : searchAgainMs, stop)
    }
    this.#searched.reject(new NoPrimary('the connections are being closed'))
  }

  /**
   * Returns null, or why no server is known to take writes. The present primary stays while it takes writes, so that a node
   * does not alternate between two such servers. A server of an older timeline is a former primary.
   */
  async #search(): Promise<string | null> {
    const present = this.#present
    if (present && this.#isKnown && (await this.#takesWrites(present))) return null
    const faults = new Set<string>()
    const answers = this.#urls.map(async (url) => {
      try {
        const answer = await this.#ask(url)
        if (answer.timeline < (present?.timeline ?? 0)) throw new Error('a former primary')
        return answer
      } catch (error) {
        faults.add((error as Error).message || (error as NodeJS.ErrnoException).code || 'no answer')
        throw error
      }
    })
    const found = await Promise.any(answers).catch(() => null)
    this.#endAsking()
    if (!found) return [...faults].join('; ')
    this.#present = found
    for (const [client, url] of this.#connections) if (url !== found.url) cut(client)
    return null
  }

  async #takesWrites({ url }: Answer): Promise<boolean> {
    try {
      await this.#ask(url)
      return true
    } catch (error) {
      // SQLSTATE class 53: it lives, and has no connection left for this question.
      return /^53/.test((error as { code?: string }).code ?? '')
    }
  }

  /** Rejects if the server does not take writes, or does not answer in time. */
  async #ask(url: string): Promise<Answer> {
    // Throws synchronously if a file that the URL names is missing.
    const client = new pg.Client({ connectionString: url, application_name: 'posthorn' })
    client.on('error', () => {})
    this.#asking.add(client)
    const timer = setTimeout(() => cut(client), answerMs)
    try {
      await client.connect()
      const { rows } = await client.query<{ timeline: number | null }>(askTimeline)
      const { timeline } = rows[0]!
      if (timeline === null) throw new Error('a standby, or read-only')
      void client.end().catch(() => {})
      return { url, timeline }
    } catch (error) {
      cut(client)
      throw error
    } finally {
      clearTimeout(timer)
      this.#asking.delete(client)
    }
  }

  #endAsking(): void {
    for (const client of this.#asking) cut(client)
  }
}

/** Null if the server takes no writes. The name of a WAL file begins with its timeline, as eight hexadecimal digits. */
const askTimeline = `select case when current_setting('transaction_read_only') = 'off'
  then ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer end as timeline`

function newSearch(): PromiseWithResolvers<void> {
  const search = Promise.withResolvers<void>()
  search.promise.catch(() => {}) // often there is no waiter
  return search
}

/** Ends a connection without waiting for its server. Its running statement rejects as on any broken connection. */
function cut(client: pg.Client): void {
  const { connection } = client as unknown as { connection: { stream: { destroy(): void } } }
  connection.stream.destroy()
}
