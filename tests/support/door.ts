// A proxy in front of a test's database that can be shut, which breaks connections and refuses new ones.
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { Place } from './node.ts'

/** After this silence, a node's connections to the database send a probe. */
const keepAliveMs = 5_000

/** The end of an answer outside a transaction: ReadyForQuery, idle. */
const idle = Buffer.from('Z\0\0\0\x05I')

export class Door {
  #server: Server | null = null
  #port = 0
  readonly #sockets = new Set<Socket>()
  readonly #fars = new Set<Socket>()
  readonly #nears = new Set<Socket>()
  #isHeld = false
  #isSilent = false
  #lastWords: string | null = null
  #losing: { text: string; by: Socket | null; lost: () => void } | null = null
  readonly #target: { path: string } | { host: string; port: number }
  readonly #database: URL

  constructor({ connection }: Pick<Place, 'connection'>) {
    if ('connectionString' in connection) {
      this.#database = new URL(connection.connectionString)
      this.#target = { host: this.#database.hostname, port: Number(this.#database.port || 5432) }
    } else {
      const { host, port, user, database } = connection
      this.#database = new URL(`postgres://${user}@localhost/${database}`)
      this.#target = { path: `${host}/.s.PGSQL.${port}` }
    }
  }

  /** Opens the proxy, at the same port each time. */
  async open(): Promise<void> {
    this.#server = createServer((near) => {
      const far = connect(this.#target)
      this.#fars.add(far)
      far.on('close', () => this.#fars.delete(far))
      this.#nears.add(near)
      near.on('close', () => this.#nears.delete(near))
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(one)
        one.on('data', (bytes) => {
          if (!this.#loses(one, other, bytes)) other.write(bytes)
        })
        one.on('end', () => other.end())
        one.on('error', () => {})
        one.on('close', () => {
          this.#sockets.delete(one)
          other.destroy()
        })
      }
      near.prependListener('data', (bytes) => this.#listen(bytes))
      if (this.#isHeld) far.pause()
      if (this.#isSilent) near.pause()
    })
    this.#server.listen(this.#port, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#port = (this.#server.address() as { port: number }).port
  }

  async shut(): Promise<void> {
    const server = this.#server
    this.#server = null
    if (!server) return
    for (const socket of this.#sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  }

  /** Passes requests on and holds back all answers, like a stopped server. */
  hold(): void {
    this.#isHeld = true
    for (const far of this.#fars) far.pause()
  }

  /** Drops all bytes both ways without closing a connection, like a partitioned network. */
  silence(): void {
    this.hold()
    this.#isSilent = true
    for (const near of this.#nears) near.pause()
  }

  /**
   * The server is gone without closing, and another host has its address. That host resets unknown connections at the next
   * byte sent, or else at the next probe of TCP keepalive. New connections get through.
   */
  desert(): void {
    for (const near of this.#nears) {
      near.removeAllListeners('data').on('data', () => near.resetAndDestroy())
      setTimeout(() => near.resetAndDestroy(), keepAliveMs).unref()
    }
    for (const far of this.#fars) far.removeAllListeners('close').destroy()
    this.#fars.clear()
  }

  /** Holds back answers from the first query with this text on, including its own. */
  holdFrom(text: string): void {
    this.#lastWords = text
  }

  /**
   * Passes on the first request that contains this text, and drops the connection in place of the answer that its
   * transaction has ended. Resolves then.
   */
  async loseCommit(text: string): Promise<void> {
    await new Promise<void>((lost) => (this.#losing = { text, by: null, lost }))
  }

  #loses(from: Socket, to: Socket, bytes: Buffer): boolean {
    if (!this.#losing) return false
    if (this.#nears.has(from) && !this.#losing.by && bytes.includes(this.#losing.text)) this.#losing.by = from
    if (this.#losing.by !== to || !bytes.subarray(-idle.length).equals(idle)) return false
    to.destroy()
    this.#losing.lost()
    this.#losing = null
    return true
  }

  #listen(bytes: Buffer): void {
    if (this.#lastWords !== null && bytes.includes(this.#lastWords)) this.hold()
  }

  /** Passes on the held bytes and everything after them. */
  release(): void {
    this.#isHeld = false
    this.#isSilent = false
    this.#lastWords = null
    for (const socket of [...this.#fars, ...this.#nears]) socket.resume()
  }

  /** The URL of the database behind it. */
  get url(): string {
    const url = new URL(this.#database)
    url.host = `127.0.0.1:${this.#port}`
    return url.href
  }
}
