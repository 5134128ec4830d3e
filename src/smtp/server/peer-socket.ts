// The socket of a session's peer: plain, then TLS. Holds replies until they are sent together.
import type { Socket } from 'node:net'
import { type SecureContext, TLSSocket } from 'node:tls'
import { formatReply, type Reply } from '../reply.ts'
import type { Tls } from './backend.ts'

const maxHeldReplyChars = 16_384

interface SocketEvents {
  received(bytes: Buffer): void
  /** The peer sends nothing more. */
  ended(): void
  /** May be called twice: by the socket and by the TLS around it. */
  closed(): void
}

export class PeerSocket {
  readonly #events: SocketEvents
  #socket: Socket
  #replies = ''
  #hasEnded = false

  constructor(socket: Socket, events: SocketEvents) {
    this.#socket = socket
    this.#events = events
    this.#listen(socket)
  }

  /** The peer sends nothing more. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Holds a reply until the next `flush`, or until the held replies are too long. */
  say(answer: Reply): void {
    this.#replies += formatReply(answer)
  }

  flush(): void {
    if (this.#replies === '') return
    if (this.#socket.writable) this.#socket.write(this.#replies, 'latin1')
    this.#replies = ''
  }

  /** Bounds the data that waits for the peer. Null if there is room; otherwise resolves once there is. */
  makeRoom(): Promise<void> | null {
    if (this.#replies.length > maxHeldReplyChars) this.flush()
    const socket = this.#socket
    if (!socket.writableNeedDrain) return null
    return new Promise((resolve) => {
      const done = () => {
        socket.off('drain', done).off('close', done)
        resolve()
      }
      socket.once('drain', done).once('close', done)
    })
  }

  /** Starts TLS. `early`: bytes of the handshake that were read already. Calls `secured` after the handshake. */
  startTls(secureContext: SecureContext, early: Buffer, secured: (tls: Tls) => void): void {
    const plain = this.#socket
    plain.removeAllListeners('data')
    if (early.length > 0) {
      plain.pause()
      plain.unshift(early)
    }
    const secure = new TLSSocket(plain, { isServer: true, secureContext })
    secure.disableRenegotiation()
    secure.once('secure', () => {
      const protocol = secure.getProtocol() ?? 'none'
      secured({ encrypted: true, protocol, cipher: secure.getCipher().standardName })
    })
    this.#listen(secure)
    this.#socket = secure
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  /** Sends nothing more. */
  end(): void {
    this.#socket.end()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #listen(socket: Socket): void {
    socket.on('data', (bytes: Buffer) => this.#events.received(bytes))
    socket.on('end', () => {
      this.#hasEnded = true
      this.#events.ended()
    })
    // 'close' follows every error and is handled below.
    socket.on('error', () => {})
    socket.once('close', () => this.#events.closed())
  }
}
