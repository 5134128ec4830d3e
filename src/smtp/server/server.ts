// The SMTP listener: accepts connections within limits, checks their deadlines, drains.
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { writtenAddress } from '../../base/ip-address.ts'
import { meters } from '../../base/meters.ts'
import { formatReply, type Reply, reply } from '../reply.ts'
import { Connection } from './connection.ts'
import type { Peers } from './peers.ts'
import { Reputation } from './reputation.ts'
import { defaultServerLimits, type ServerLimits, type SmtpServerOptions } from './server-options.ts'

const backlog = 1024
const refusalDrainMs = 2000
/** Refused peers that get time to read the reply. Others are closed at once, so that they use no room of admitted peers. */
const maxLingering = 200
const full = reply(421, '4.7.0', 'Too many connections, try again later')
const shuttingDown = reply(421, '4.3.2', 'Shutting down, try again later')

export class SmtpServer {
  readonly #options: SmtpServerOptions
  readonly #limits: ServerLimits
  readonly #peers: Peers
  readonly #connections = new Set<Connection>()
  readonly #server: Server
  /** Connections whose peer is being counted. */
  #admitting = 0
  #isClosing = false
  #lingering = 0
  #sweeper: NodeJS.Timeout | undefined
  #whenEmpty: (() => void) | undefined

  constructor(options: SmtpServerOptions) {
    this.#options = options
    this.#limits = { ...defaultServerLimits, ...options.limits }
    this.#peers = options.peers ?? new Reputation(this.#limits, options)
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      void this.#accept(socket)
    })
  }

  /** Open sessions. */
  get sessions(): number {
    return this.#connections.size
  }

  /** Starts to accept. Returns the address and port. Rejects if the address cannot be bound. */
  async listen(): Promise<{ host: string; port: number }> {
    const { host, port } = this.#options.listen
    this.#server.listen({ host, port, backlog })
    await once(this.#server, 'listening')
    // An accept can fail, for example for lack of file descriptors. That must not end the service.
    this.#server.on('error', (error) =>
      this.#options.log.error({ err: error }, 'SMTP connection could not be accepted'),
    )
    this.#sweeper = setInterval(() => this.#sweep(), this.#limits.sweepIntervalMs)
    const bound = this.#server.address() as { address: string; port: number }
    return { host: bound.address, port: bound.port }
  }

  /**
   * Stops accepting. Sends 421 to idle sessions at once, and to the others after their message. Closes all that are still
   * open after `graceMs`. Resolves when no session is open.
   */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true
    this.#server.close()
    for (const connection of this.#connections) connection.drain()
    const grace = setTimeout(() => {
      for (const connection of this.#connections) connection.destroy()
    }, graceMs)
    if (this.#connections.size > 0) await new Promise<void>((resolve) => (this.#whenEmpty = resolve))
    clearTimeout(grace)
    clearInterval(this.#sweeper)
  }

  async #accept(socket: Socket): Promise<void> {
    if (socket.remoteAddress === undefined) {
      socket.destroy()
      return
    }
    // While the peer is counted, the socket may break: 'close' follows, and nothing was read.
    socket.on('error', () => {})
    const address = writtenAddress(socket.remoteAddress)
    const admitted: string[] = []
    const isFull = this.#connections.size + this.#admitting >= this.#limits.maxConnections
    if (isFull) meters.peersRefused.inc({ reason: 'full' })
    this.#admitting++
    const refusal = isFull ? full : await this.#admit(address, admitted)
    this.#admitting--
    if (refusal || socket.destroyed || this.#isClosing) {
      this.#leave(admitted)
      this.#refuse(socket, refusal ?? shuttingDown)
      return
    }
    this.#begin(socket, address, admitted)
  }

  #begin(socket: Socket, address: string, admitted: string[]): void {
    const connection = new Connection(socket, address, {
      server: this.#options,
      limits: this.#limits,
      peers: this.#peers,
      admit: async (proxied) => {
        const refusal = await this.#admit(proxied, admitted)
        // The connection may have ended meanwhile.
        if (!this.#connections.has(connection)) this.#leave(admitted)
        return refusal
      },
      closed: () => this.#forget(connection, admitted),
    })
    this.#connections.add(connection)
  }

  async #admit(address: string, admitted: string[]): Promise<Reply | null> {
    if (this.#options.isTrusted(address)) return null
    const refusal = await this.#peers.admit(address)
    if (refusal === null) admitted.push(address)
    return refusal
  }

  #leave(admitted: string[]): void {
    for (const address of admitted.splice(0)) this.#peers.leave(address)
  }

  // The socket and the TLS around it both report their end. Only the first report counts.
  #forget(connection: Connection, admitted: string[]): void {
    if (!this.#connections.delete(connection)) return
    this.#leave(admitted)
    if (this.#connections.size === 0) this.#whenEmpty?.()
  }

  #sweep(): void {
    for (const connection of this.#connections) connection.checkDeadline()
  }

  #refuse(socket: Socket, refusal: Reply): void {
    if (this.#lingering >= maxLingering || socket.destroyed) {
      socket.destroy()
      return
    }
    this.#lingering++
    socket.once('close', () => this.#lingering--)
    const timer = setTimeout(() => socket.destroy(), refusalDrainMs)
    socket.once('close', () => clearTimeout(timer))
    socket.end(formatReply(refusal))
    socket.resume()
  }
}
