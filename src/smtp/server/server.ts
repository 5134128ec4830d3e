// The SMTP listener: accepts connections within limits, checks their deadlines, drains.
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { writtenAddress } from '../../base/ip-address.ts'
import { meters } from '../../base/meters.ts'
import { formatReply, type Reply, reply } from '../reply.ts'
import { Connection } from './connection.ts'
import { Reputation } from './reputation.ts'
import { defaultServerLimits, type ServerLimits, type SmtpServerOptions } from './server-options.ts'

const backlog = 1024
const refusalDrainMs = 2000
/** Refused peers that get time to read the reply. Others are closed at once, so that they use no room of admitted peers. */
const maxLingering = 200
const full = reply(421, '4.7.0', 'Too many connections, try again later')

export class SmtpServer {
  readonly #options: SmtpServerOptions
  readonly #limits: ServerLimits
  readonly #reputation: Reputation
  readonly #connections = new Set<Connection>()
  readonly #server: Server
  #lingering = 0
  #sweeper: NodeJS.Timeout | undefined
  #whenEmpty: (() => void) | undefined

  constructor(options: SmtpServerOptions) {
    this.#options = options
    this.#limits = { ...defaultServerLimits, ...options.limits }
    this.#reputation = new Reputation(this.#limits, options)
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket))
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
    this.#server.close()
    for (const connection of this.#connections) connection.drain()
    const grace = setTimeout(() => {
      for (const connection of this.#connections) connection.destroy()
    }, graceMs)
    if (this.#connections.size > 0) await new Promise<void>((resolve) => (this.#whenEmpty = resolve))
    clearTimeout(grace)
    clearInterval(this.#sweeper)
  }

  #accept(socket: Socket): void {
    if (socket.remoteAddress === undefined) {
      socket.destroy()
      return
    }
    const address = writtenAddress(socket.remoteAddress)
    const admitted: string[] = []
    const isFull = this.#connections.size >= this.#limits.maxConnections
    if (isFull) meters.peersRefused.inc({ reason: 'full' })
    const refusal = isFull ? full : this.#admit(address, admitted)
    if (refusal) {
      this.#refuse(socket, refusal)
      return
    }
    const connection = new Connection(socket, address, {
      server: this.#options,
      limits: this.#limits,
      reputation: this.#reputation,
      admit: (proxied) => this.#admit(proxied, admitted),
      closed: () => this.#forget(connection, admitted),
    })
    this.#connections.add(connection)
  }

  #admit(address: string, admitted: string[]): Reply | null {
    if (this.#options.isTrusted(address)) return null
    const refusal = this.#reputation.admit(address)
    if (refusal === null) admitted.push(address)
    return refusal
  }

  // The socket and the TLS around it both report their end. Only the first report counts.
  #forget(connection: Connection, admitted: string[]): void {
    if (!this.#connections.delete(connection)) return
    for (const address of admitted) this.#reputation.leave(address)
    if (this.#connections.size === 0) this.#whenEmpty?.()
  }

  #sweep(): void {
    for (const connection of this.#connections) connection.checkDeadline()
  }

  #refuse(socket: Socket, refusal: Reply): void {
    // 'close' follows every error, and this socket holds no resources.
    socket.on('error', () => {})
    if (this.#lingering >= maxLingering) {
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
