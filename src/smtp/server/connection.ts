// One accepted connection: bytes in, replies out, deadlines, STARTTLS and the proxy's header. Knows no SMTP state.
import type { Socket } from 'node:net'
import type { SecureContext } from 'node:tls'
import { type Reply, reply } from '../reply.ts'
import type { Tls } from './backend.ts'
import { maxPendingLineBytes, parseCommand } from './command.ts'
import { Deadlines } from './deadlines.ts'
import { PeerSocket } from './peer-socket.ts'
import type { Peers } from './peers.ts'
import { type ProxiedPeer, readProxyHeader } from './proxy.ts'
import type { ServerLimits, SmtpServerOptions } from './server-options.ts'
import { type NextStep, Session } from './session.ts'

/** Maximum input to buffer while earlier input is processed. Above it, we stop reading from the peer. */
const maxWaitingBytes = 16_384
/** How long a peer may take to read our last reply after we hung up. */
const drainMs = 2000
const handshakeTimeoutMs = 60_000

const lineFeed = 0x0a
const nothing: Buffer = Buffer.alloc(0)
const tooEarly = reply(554, '5.5.0', 'SMTP synchronization error, wait for the reply')
const shuttingDown = reply(421, '4.3.2', 'Shutting down, try again later')

/** The meaning of the connection's next bytes. */
type Stage = 'greeting' | 'command' | 'dots' | 'chunk' | 'handshake' | 'closed'

interface ConnectionOptions {
  server: SmtpServerOptions
  limits: ServerLimits
  peers: Peers
  /** Called when a trusted proxy names the peer behind it. Null admits that peer. */
  admit(address: string): Promise<Reply | null>
  /** Called when the connection has ended. */
  closed(): void
}

export class Connection {
  readonly #options: ConnectionOptions
  readonly #session: Session
  readonly #deadlines: Deadlines
  readonly #socket: PeerSocket
  #stage: Stage = 'greeting'
  #proxyHeader: 'expected' | 'partial' | 'past'
  #input = nothing
  /** Bytes of the current BDAT chunk still to come. */
  #chunkBytes = 0
  #isPumping = false
  #isBackendBusy = false
  #isDraining = false

  constructor(socket: Socket, address: string, options: ConnectionOptions) {
    this.#options = options
    this.#proxyHeader = options.server.isTrusted(address) ? 'expected' : 'past'
    this.#session = new Session(options.server, options, { address, port: socket.remotePort ?? 0 })
    this.#deadlines = new Deadlines(options.server.clock, options.limits)
    this.#socket = new PeerSocket(socket, {
      received: (bytes) => this.#receive(bytes),
      ended: () => this.#endWhenIdle(),
      closed: () => this.#closed(),
    })
    // The event loop polls the socket once between the two immediates, so bytes sent before our banner are seen.
    setImmediate(() => setImmediate(() => this.#greet()))
  }

  /** Ends the connection if it has waited too long for its peer. Called at every sweep. */
  checkDeadline(): void {
    if (this.#isBackendBusy || !this.#isOverdue) return
    if (this.#stage === 'closed' || this.#stage === 'handshake') this.destroy()
    // RFC 5321 3.8: a server that gives up waiting says 421.
    else this.#hangUp(reply(421, '4.4.2', 'Timeout'))
  }

  /** Sends 421 as soon as no message is being received. */
  drain(): void {
    this.#isDraining = true
    if (this.#stage === 'handshake') this.destroy()
    else if (!this.#isPumping) this.#hangUpIfDrained()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  get #isOverdue(): boolean {
    const { isStepOver, isMessageOver, isSessionOver } = this.#deadlines
    if (isStepOver || this.#stage === 'closed') return isStepOver
    return isMessageOver || (isSessionOver && !this.#session.isReceiving)
  }

  #endWhenIdle(): void {
    if (!this.#isPumping) this.#socket.end()
  }

  #greet(): void {
    if (this.#stage !== 'greeting') return
    // Within TLS from the start, the client speaks first, and before it a proxy.
    if (this.#mustSecure && this.#proxyHeader !== 'past' && this.#input.length === 0) return
    // The proxy's header may arrive in parts: we wait for the rest, within the deadline of a command.
    const header = this.#proxyHeader === 'past' ? 'none' : this.#takeProxyHeader()
    if (header === 'awaited') return
    if (header !== 'none') {
      void header.then(() => this.#greet())
      return
    }
    if (this.#mustSecure) {
      this.#secure()
      return
    }
    // RFC 5321 4.3.1: the client waits for the greeting. A client that does not is a robot.
    if (this.#input.length > 0) {
      this.#hangUp(tooEarly)
      return
    }
    this.#stage = 'command'
    this.#socket.say(reply(220, null, `${this.#options.server.hostname} ESMTP Posthorn`))
    this.#socket.flush()
    if (this.#isDraining) this.#hangUpIfDrained()
  }

  #receive(bytes: Buffer): void {
    if (this.#stage === 'closed') return
    this.#input = this.#input.length === 0 ? bytes : Buffer.concat([this.#input, bytes])
    if (this.#stage === 'greeting') this.#inputWhileGreeting()
    else if (!this.#isPumping) void this.#pump()
    else if (this.#input.length > maxWaitingBytes) this.#socket.pause()
  }

  // Only an incomplete proxy header needs these bytes. In all other cases the banner is about to be sent.
  #inputWhileGreeting(): void {
    if (this.#proxyHeader === 'partial' || (this.#proxyHeader === 'expected' && this.#mustSecure))
      this.#greet()
    else if (this.#input.length > maxPendingLineBytes) this.#hangUp(tooEarly)
  }

  /** Processes all input, one step at a time. Replies are sent together. */
  async #pump(): Promise<void> {
    this.#isPumping = true
    try {
      while (this.#stage !== 'closed' && this.#stage !== 'handshake') {
        if (this.#isDraining && this.#hangUpIfDrained()) break
        const room = this.#socket.makeRoom()
        if (room) await room
        const working = this.#advance()
        if (working === 'starved') break
        if (working) await this.#whileBackendWorks(working)
      }
    } catch (error) {
      // Our own bug: this session ends, the others continue.
      this.#options.server.log.error({ err: error }, 'SMTP session failed')
      this.#hangUp(reply(421, '4.3.0', 'Local error, try again later'))
    }
    this.#isPumping = false
    this.#socket.flush()
    if (this.#socket.hasEnded) this.#socket.end()
    else this.#socket.resume()
  }

  async #whileBackendWorks(working: Promise<void>): Promise<void> {
    this.#isBackendBusy = true
    try {
      await working
    } finally {
      this.#isBackendBusy = false
      this.#awaitPeer()
    }
  }

  #advance(): 'starved' | void | Promise<void> {
    if (this.#stage === 'dots') return this.#takeDots()
    if (this.#stage === 'chunk') return this.#takeChunk()
    if (this.#proxyHeader !== 'past' && this.#input.length > 0) {
      const header = this.#takeProxyHeader()
      if (header !== 'none') return header === 'awaited' ? 'starved' : header
    }
    const end = this.#input.indexOf(lineFeed)
    if (end < 0) {
      if (this.#input.length <= maxPendingLineBytes) return 'starved'
      return this.#hangUp(reply(500, '5.5.2', 'Line too long'))
    }
    const line = this.#input.subarray(0, end)
    this.#consume(end + 1)
    this.#proxyHeader = 'past'
    return this.#execute(line)
  }

  #execute(line: Buffer): void | Promise<void> {
    // RFC 2920 3.1: these end a group of commands. Bytes after them were injected, or are a message sent too early.
    const endsGroup = /^(?:EHLO|HELO|DATA|STARTTLS)\b/i.test(line.toString('latin1', 0, 9))
    if (endsGroup && this.#input.length > 0) return this.#hangUp(tooEarly)
    if (this.#session.isChallenging) return this.#follow(this.#session.respond(line))
    return this.#follow(this.#session.execute(parseCommand(line, this.#options.server.hostname)))
  }

  #follow(step: NextStep | Promise<NextStep>): void | Promise<void> {
    if (step instanceof Promise) return step.then((settled) => this.#take(settled))
    this.#take(step)
  }

  #take(step: NextStep): void {
    if (this.#stage === 'closed') return
    if (step.next === 'close') {
      this.#hangUp(step.reply)
      return
    }
    if (step.next === 'chunk') this.#chunkBytes = step.sizeBytes
    else this.#socket.say(step.reply)
    if (step.next === 'tls') {
      this.#startTls(step.secureContext)
      return
    }
    this.#stage = step.next
    if (!this.#session.isReceiving) this.#deadlines.endMessage()
    this.#awaitPeer()
  }

  /** Restarts the peer's deadline after a complete step. */
  #awaitPeer(): void {
    if (this.#stage === 'closed') return
    if (this.#stage === 'dots' || this.#stage === 'chunk') this.#deadlines.awaitContent()
    else this.#deadlines.awaitCommand()
  }

  #takeDots(): 'starved' | void | Promise<void> {
    if (this.#input.length === 0) return 'starved'
    const { used, isOver, settled } = this.#session.takeDots(this.#input)
    this.#consume(used)
    this.#awaitPeer()
    if (!isOver) return settled
    // If the backend fails on the last bytes, the reply to the message must say so.
    return settled ? settled.then(() => this.#endMessage()) : this.#endMessage()
  }

  #endMessage(): void | Promise<void> {
    // The connection may have been lost while the backend took the last bytes.
    if (this.#stage === 'closed') return
    return this.#follow(this.#session.endDots())
  }

  #takeChunk(): 'starved' | void | Promise<void> {
    if (this.#chunkBytes === 0) {
      // The replies to earlier pipelined commands must not wait for the commit.
      this.#socket.flush()
      return this.#follow(this.#session.endChunk())
    }
    if (this.#input.length === 0) return 'starved'
    const bytes = this.#input.subarray(0, this.#chunkBytes)
    this.#consume(bytes.length)
    this.#chunkBytes -= bytes.length
    this.#awaitPeer()
    return this.#session.takeChunk(bytes)
  }

  #consume(count: number): void {
    this.#input = count === this.#input.length ? nothing : this.#input.subarray(count)
  }

  /**
   * Reads the proxy's header from the input. Resolves once its peer is admitted. A malformed header, or a peer that is not
   * admitted, ends the connection.
   */
  #takeProxyHeader(): Promise<void> | 'awaited' | 'none' {
    const header = readProxyHeader(this.#input)
    this.#proxyHeader = header === 'part' ? 'partial' : header === 'none' ? 'expected' : 'past'
    if (header === 'part') return 'awaited'
    if (header === 'none') return 'none'
    if (header !== 'malformed') this.#consume(header.sizeBytes)
    return this.#replacePeer(header === 'malformed' ? header : header.peer)
  }

  async #replacePeer(peer: ProxiedPeer | 'malformed'): Promise<void> {
    if (peer === 'unknown') return
    if (peer === 'malformed') return this.#hangUp(reply(554, '5.5.0', 'Malformed PROXY header'))
    this.#session.replacePeer(peer.address, peer.port)
    const refusal = await this.#options.admit(peer.address)
    if (refusal) this.#hangUp(refusal)
  }

  get #mustSecure(): boolean {
    const { backend } = this.#options.server
    // RFC 8314 3.3: TLS begins with the connection, before the greeting.
    return 'admit' in backend && backend.tls === 'implicit' && !this.#session.isEncrypted
  }

  #secure(): void {
    const secureContext = this.#options.server.secureContext()
    if (secureContext) this.#startTls(secureContext)
    else this.destroy()
  }

  #startTls(secureContext: SecureContext): void {
    const early = this.#input
    this.#input = nothing
    this.#socket.flush()
    const next = this.#stage === 'greeting' ? 'greeting' : 'command'
    this.#stage = 'handshake'
    this.#deadlines.allow(handshakeTimeoutMs)
    this.#socket.startTls(secureContext, early, (tls) => this.#secured(tls, next))
  }

  #secured(tls: Tls, next: 'greeting' | 'command'): void {
    this.#session.startOver(tls)
    this.#stage = next
    this.#awaitPeer()
    this.#greet()
    if (this.#isDraining) this.#hangUpIfDrained()
    else if (this.#input.length > 0 && !this.#isPumping) void this.#pump()
  }

  #hangUpIfDrained(): boolean {
    const due = this.#stage === 'command' && !this.#session.isReceiving
    if (due) this.#hangUp(shuttingDown)
    return due
  }

  /** Sends the last reply. Drops further input for a moment, so that a reset does not lose the reply. */
  #hangUp(last: Reply): void {
    if (this.#stage === 'closed') return
    this.#socket.say(last)
    this.#socket.flush()
    this.#stage = 'closed'
    this.#input = nothing
    this.#session.noteEnd(last)
    this.#session.abort()
    this.#deadlines.allow(drainMs)
    this.#socket.end()
    this.#socket.resume()
  }

  #closed(): void {
    this.#stage = 'closed'
    this.#session.abort()
    this.#options.closed()
  }
}
