// One side of an SMTP conversation as a test reads it: bytes up to a mark, or a number of them, nothing from src/smtp.
import type { Socket } from 'node:net'

const lineEnd = Buffer.from('\r\n')
const messageEnd = Buffer.from('\r\n.\r\n')

export class Wire {
  readonly #socket: Socket
  readonly #chunks: AsyncIterator<Buffer>
  #held: Buffer = Buffer.alloc(0)

  constructor(socket: Socket) {
    this.#socket = socket
    // The reader sees a broken connection as its end. An unhandled error event would end the whole test run.
    socket.on('error', () => {})
    this.#chunks = socket[Symbol.asyncIterator]()
  }

  /** The next line without its CRLF, or null when the connection has ended. */
  async line(): Promise<string | null> {
    const line = await this.#until(lineEnd)
    return line ? line.toString('utf8') : null
  }

  /** A complete reply, its lines joined by LF, or null when the connection has ended. */
  async reply(): Promise<string | null> {
    const lines: string[] = []
    for (;;) {
      const line = await this.line()
      if (line === null) return null
      lines.push(line)
      if (line[3] !== '-') return lines.join('\n')
    }
  }

  /** A message after DATA, without its dot-stuffing and its final dot, or null when the connection has ended. */
  async message(): Promise<Buffer | null> {
    // RFC 5321 4.1.1.4: the CRLF that ends the DATA command also begins an empty message's final dot.
    this.#held = Buffer.concat([lineEnd, this.#held])
    const message = await this.#until(messageEnd)
    if (!message) return null
    return message.length === 0 ? message : unstuff(Buffer.concat([message.subarray(2), lineEnd]))
  }

  /** Exactly `count` bytes, or null when the connection has ended. */
  async bytes(count: number): Promise<Buffer | null> {
    while (this.#held.length < count) if (!(await this.#more())) return null
    return this.#take(count, count)
  }

  /** Resolves once the operating system has the bytes, or the connection is gone. */
  write(bytes: string | Buffer): Promise<void> {
    return new Promise((resolve) => {
      if (this.#socket.destroyed || !this.#socket.writable) resolve()
      else this.#socket.write(bytes, () => resolve())
    })
  }

  async #until(mark: Buffer): Promise<Buffer | null> {
    for (let from = 0; ; ) {
      const at = this.#held.indexOf(mark, from)
      if (at >= 0) return this.#take(at, at + mark.length)
      from = Math.max(0, this.#held.length - mark.length)
      if (!(await this.#more())) return null
    }
  }

  #take(count: number, drop: number): Buffer {
    const taken = this.#held.subarray(0, count)
    this.#held = this.#held.subarray(drop)
    return taken
  }

  async #more(): Promise<boolean> {
    try {
      const { done, value } = await this.#chunks.next()
      if (done) return false
      this.#held = Buffer.concat([this.#held, value])
      return true
    } catch {
      // A reset connection has ended like any other.
      return false
    }
  }
}

function unstuff(message: Buffer): Buffer {
  if (message[0] !== 0x2e && !message.includes('\r\n.')) return message
  return Buffer.from(message.toString('latin1').replace(/(^|\r\n)\./g, '$1'), 'latin1')
}

/** Dot-stuffs a message and ends it with CRLF, dot, CRLF. */
export function stuff(message: Buffer): Buffer {
  const text = message.toString('latin1')
  const stuffed = text.replace(/(^|\r\n)\./g, '$1..')
  return Buffer.from(`${stuffed}${stuffed.endsWith('\r\n') ? '' : '\r\n'}.\r\n`, 'latin1')
}
