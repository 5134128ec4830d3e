// The socket of the SMTP client: writes commands, returns replies in order, each with its deadline, and starts TLS.
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import type { Reply } from '../reply.ts'
import { type PeerReply, ReplyReader, sanitize } from './reply-reader.ts'
import type { PeerEvidence } from './tls-requirement.ts'

/** The maximum time the peer may take at each step. */
export interface Timeouts {
  connectMs: number
  bannerMs: number
  ehloMs: number
  mailMs: number
  rcptMs: number
  dataStartMs: number
  dataBlockMs: number
  dataFinalMs: number
  quitMs: number
}

/** A connection fault as a value. `refused`: the peer sent a reply, which comes with the fault. */
export interface Fault {
  kind: 'connect' | 'timeout' | 'tls' | 'protocol' | 'closed' | 'refused'
  /** Sanitized, at most 500 characters. */
  message: string
}

/** The peer's address, and the name its certificate must have. */
export interface WireOptions {
  /** Name of the peer, for SNI and for the certificate. */
  host: string
  /** The server name of TLS if it is not `host`. */
  serverName?: string | undefined
  /** IP address to connect to. */
  address: string
  port: number
  /** The local address to connect from. If absent, the system chooses. */
  localAddress?: string | undefined
  /** `host`: the certificate must be valid for `host`. `none`: encryption with an unverified peer. */
  tlsVerify: 'host' | 'none'
  /** Certificate authorities (PEM) to trust instead of the system's. */
  tlsAuthorities?: string | undefined
  connectMs: number
  signal?: AbortSignal | undefined
}

/** A reply, or the fault that came instead. */
export type Answer = PeerReply | { fault: Fault }

/** A command and its reply. */
export interface Step {
  /** Its verb without parameters; `connect` for the greeting, `.` for the end of a message. */
  command: string
  /** When the reply was read, on the monotonic clock in milliseconds. */
  atMs: number
  reply: Reply
}

const maxFaultLength = 500

/** Makes a fault whose message is safe to store. */
export function fault(kind: Fault['kind'], message: string): Fault {
  return { kind, message: sanitize(message, maxFaultLength) }
}

export class Wire {
  readonly #options: WireOptions
  readonly #tcp: Socket
  /** `#tcp`, or TLS over it. */
  #socket: Socket
  #reader = new ReplyReader()
  #replies: PeerReply[] = []
  /** Replies that the peer still owes. Any further reply is an error, or announces the end of the connection. */
  #owed = 1
  #fault: Fault | null = null
  #unasked: Reply | null = null
  #waiting: { resolve: () => void; timer: NodeJS.Timeout } | null = null
  /** Null if not encrypted. */
  #tls: { protocol: string | null; cipher: string; peer: PeerEvidence } | null = null
  /** The kind of fault if the connection breaks now. */
  #stage: 'connect' | 'tls' | 'closed' = 'connect'

  private constructor(socket: Socket, options: WireOptions) {
    this.#tcp = socket
    this.#socket = socket
    this.#options = options
  }

  /** Connects, with TLS from the first byte if `implicit`. Resolves with the wire or with the fault. */
  static async open(options: WireOptions, tls: 'plain' | 'implicit'): Promise<Wire | { fault: Fault }> {
    if (options.signal?.aborted) return { fault: fault('closed', 'aborted') }
    const { address: host, port, localAddress } = options
    const from = localAddress === undefined ? {} : { localAddress }
    const socket = connectTcp({ host, port, noDelay: true, ...from })
    const wire = new Wire(socket, options)
    options.signal?.addEventListener('abort', wire.#abort)
    socket.once('close', () => options.signal?.removeEventListener('abort', wire.#abort))
    const unreached = await wire.#reached(socket, 'connect', options.connectMs)
    if (unreached) return { fault: unreached }
    if (tls === 'plain') wire.#listen()
    else {
      const failed = await wire.startTls(options.connectMs)
      if (failed) return { fault: failed }
    }
    return wire
  }

  /** The fault that ended this wire; null while it is open. */
  get fault(): Fault | null {
    return this.#fault
  }

  /** The unsolicited refusal that ended this wire: a 421, or the reply to a message before its end. */
  get unasked(): Reply | null {
    return this.#unasked
  }

  /** Our own address on this connection; null once it is closed. */
  get localAddress(): string | null {
    return this.#tcp.localAddress ?? null
  }

  /** `TLSv1.3`, or null on a plain connection. */
  get tlsProtocol(): string | null {
    return this.#tls?.protocol ?? null
  }

  /** `TLS_AES_256_GCM_SHA384`, or null on a plain connection. */
  get tlsCipher(): string | null {
    return this.#tls?.cipher ?? null
  }

  /** True if no reply is owed and none is unread, so the peer waits for the next command. */
  get isSettled(): boolean {
    return this.#fault === null && this.#owed === 0 && this.#replies.length === 0 && this.#reader.isEmpty
  }

  /** The evidence for the peer's identity. Null on a plain connection. */
  get peer(): PeerEvidence | null {
    return this.#tls?.peer ?? null
  }

  /** Sends the parts in one write. `repliesOwed` is the number of replies the peer must give. */
  write(parts: readonly (string | Buffer)[], repliesOwed: number): void {
    this.#owed += repliesOwed
    if (this.#fault) return
    this.#socket.cork()
    for (const part of parts) this.#socket.write(part)
    this.#socket.uncork()
  }

  /** Returns the next reply; or the fault, once all earlier replies were read. The deadline is for this reply alone. */
  async read(timeoutMs: number): Promise<Answer> {
    if (this.#replies.length === 0 && !this.#fault) await this.#wait(timeoutMs)
    return this.#replies.shift() ?? { fault: this.#fault! }
  }

  /** Resolves when the written bytes were sent or the wire broke. A peer that does not read is a fault. */
  async drained(timeoutMs: number): Promise<void> {
    if (this.#fault || !this.#socket.writableNeedDrain) return
    const wake = () => this.#wake()
    this.#socket.once('drain', wake)
    await this.#wait(timeoutMs)
    this.#socket.off('drain', wake)
  }

  /** Starts TLS on the connection. Returns the fault if that fails. */
  async startTls(timeoutMs: number): Promise<Fault | null> {
    const { host, serverName = host, address, tlsVerify, tlsAuthorities } = this.#options
    const plain = this.#socket
    plain.removeAllListeners('data')
    const options: ConnectionOptions = {
      socket: plain,
      host: address,
      rejectUnauthorized: tlsVerify === 'host',
    }
    // The evidence then has the fault of the chain alone. `violationOf` compares the name.
    if (tlsVerify === 'none') options.checkServerIdentity = () => undefined
    // RFC 6066 3: a server name is a DNS name, never an IP address.
    if (isIP(serverName) === 0) options.servername = serverName
    if (tlsAuthorities !== undefined) options.ca = tlsAuthorities
    const secure: TLSSocket = connectTls(options)
    this.#socket = secure
    this.#stage = 'tls'
    const failed = await this.#reached(secure, 'secureConnect', timeoutMs)
    if (failed) return failed
    this.#tls = {
      protocol: secure.getProtocol(),
      cipher: secure.getCipher().name,
      peer: evidenceOf(secure, host),
    }
    this.#listen()
    return null
  }

  /** Ends the connection at once. A pending `read` gets a fault. */
  destroy(reason: string): void {
    this.#giveUp(fault('closed', reason))
  }

  /**
   * Ends the wire. If a reply is owed, resets the connection, so that the kernel drops all unacknowledged bytes. Otherwise
   * the kernel would go on sending them. If this machine lost the network for a minute, it would then deliver a message
   * that another node has sent meanwhile.
   */
  #giveUp(reason: Fault): void {
    if (this.#owed > 0 && !this.#tcp.connecting && !this.#tcp.destroyed) this.#tcp.resetAndDestroy()
    this.#end(reason)
  }

  readonly #abort = () => this.destroy('aborted')

  /** Waits until the socket is connected or secure. Every failure is a fault. */
  async #reached(
    socket: Socket,
    event: 'connect' | 'secureConnect',
    timeoutMs: number,
  ): Promise<Fault | null> {
    socket.once(event, () => {
      this.#stage = 'closed'
      this.#wake()
    })
    socket.on('error', (error) => this.#end(fault(this.#kindOf(error), describe(error))))
    socket.on('close', () => this.#end(this.#closed()))
    await this.#wait(timeoutMs)
    return this.#fault
  }

  #listen(): void {
    this.#socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    this.#socket.on('end', () => this.#end(this.#closed()))
  }

  #closed(): Fault {
    return fault(this.#stage, 'the peer closed the connection')
  }

  #kindOf(error: NodeJS.ErrnoException): Fault['kind'] {
    return /^ERR_(?:SSL|TLS|OSSL)/.test(error.code ?? '') ? 'tls' : this.#stage
  }

  #receive(chunk: Buffer): void {
    if (this.#fault) return
    for (const peerReply of this.#reader.push(chunk)) {
      if (this.#owed === 0) this.#interrupt(peerReply.reply)
      if (this.#fault) return
      this.#owed--
      this.#replies.push(peerReply)
    }
    if (this.#reader.garbled !== null) this.#end(fault('protocol', this.#reader.garbled))
    else if (this.#replies.length > 0) this.#wake()
  }

  /** Stops response injection and desynchronized peers: an unsolicited reply ends the connection. */
  #interrupt(unasked: Reply): void {
    if (unasked.code >= 400) this.#unasked = unasked
    const kind = unasked.code >= 400 ? 'refused' : 'protocol'
    this.#end(fault(kind, `a reply to no command: ${unasked.code} ${unasked.text}`))
  }

  #end(reason: Fault): void {
    this.#fault ??= reason
    this.#socket.destroy()
    this.#wake()
  }

  #wake(): void {
    const waiting = this.#waiting
    this.#waiting = null
    if (!waiting) return
    clearTimeout(waiting.timer)
    waiting.resolve()
  }

  #wait(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const late = () => this.#giveUp(fault('timeout', `nothing for ${timeoutMs} ms`))
      this.#waiting = { resolve, timer: setTimeout(late, timeoutMs) }
    })
  }
}

function evidenceOf(secure: TLSSocket, host: string): PeerEvidence {
  // Node's type says Error, but it is the code of OpenSSL's error.
  const chainFault = secure.authorizationError as string | Error | null
  return {
    host,
    chainFault: chainFault === null ? null : String(chainFault),
    // Called once: Node takes the other certificates out of the chain as it returns them.
    certificate: secure.getPeerX509Certificate(),
  }
}

function describe(error: NodeJS.ErrnoException): string {
  return error.code ? `${error.code}: ${error.message}` : error.message
}
