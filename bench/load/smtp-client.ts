// The SMTP load generator, a separate program: reads an SmtpRun from standard input and prints an SmtpResult.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { readPool } from './pool.ts'
import { latencyOf, Turns } from './schedule.ts'
import type { SmtpResult, SmtpRun } from './smtp.ts'

// Sends the commands of Postfix's smtp-source, in lock step like smtp-source: HELO, MAIL, RCPT, DATA, the message,
// QUIT. With one message per connection it takes 170 to 190 µs of CPU a message. smtp-source, which has one text, takes
// 130 to 150.

const run = JSON.parse(await text(process.stdin)) as SmtpRun
const messages = readPool(run.pool)
const mail = `MAIL FROM:<${run.from}>\r\n`
const latenciesMs: number[] = []
const refused = { count: 0, first: '' }
/** Shared by all connections. Each read is consumed before the next one. */
const readBuffer = Buffer.alloc(4096)

/** A connection with one command in flight at a time. */
class Connection {
  readonly #socket: Socket
  #reply = ''
  #answer: ((reply: string) => void) | null = null

  private constructor() {
    this.#socket = run.password === undefined ? this.#connectPlain() : this.#connectTls()
    this.#socket.on('error', () => {}) // The close event follows and ends the wait.
    this.#socket.on('close', () => this.#end())
  }

  static async open(): Promise<Connection> {
    const connection = new Connection()
    await connection.ask('')
    await connection.ask(`${run.password === undefined ? 'HELO' : 'EHLO'} ${run.helo}\r\n`)
    // RFC 4616 2: authorization identity, user name, password.
    if (run.password !== undefined)
      await connection.ask(`AUTH PLAIN ${Buffer.from(`\0bench\0${run.password}`).toString('base64')}\r\n`)
    return connection
  }

  #connectPlain(): Socket {
    const callback = (size: number, buffer: Uint8Array) => this.#read(size, buffer as Buffer)
    const onread = { buffer: readBuffer, callback }
    return connect({ host: '127.0.0.1', port: run.port, noDelay: true, onread })
  }

  #connectTls(): Socket {
    // The service has made its own certificate.
    const socket = connectTls({ host: '127.0.0.1', port: run.port, rejectUnauthorized: false })
    socket.setNoDelay(true)
    return socket.on('data', (bytes: Buffer) => void this.#read(bytes.length, bytes))
  }

  /** Sends these words and waits for the reply. Throws unless the reply is 2xx or 3xx. */
  async ask(words: string | Buffer): Promise<void> {
    const answered = new Promise<string>((resolve) => (this.#answer = resolve))
    if (words.length > 0) this.#socket.write(words)
    const reply = await answered
    if (reply[0] !== '2' && reply[0] !== '3') throw new Error(reply || 'the connection was closed')
  }

  close(): void {
    this.#socket.end('QUIT\r\n')
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #read(size: number, buffer: Buffer): boolean {
    this.#reply += buffer.toString('latin1', 0, size)
    // RFC 5321 4.2.1: the last line of a reply has a space after its code.
    if (/^\d{3}(?: .*)?\r\n$/m.test(this.#reply)) this.#end()
    return true
  }

  #end(): void {
    const reply = this.#reply
    this.#reply = ''
    this.#answer?.(reply)
    this.#answer = null
  }
}

const turns = new Turns(run)
const startedAtMs = performance.timeOrigin + performance.now()
await Promise.all(Array.from({ length: run.sessions }, runSession))
const endedAtMs = performance.timeOrigin + performance.now()

const result: SmtpResult = {
  startedAtMs,
  endedAtMs,
  accepted: latenciesMs.length,
  refused: refused.count,
  firstRefusal: refused.first,
  latencyMs: latencyOf(latenciesMs),
}
if (!process.stdout.write(JSON.stringify(result))) await once(process.stdout, 'drain')
process.exit(0)

/** Sends messages one after the other until none is left. */
async function runSession(): Promise<void> {
  let connection: Connection | null = null
  for (let turn = turns.take(); turn; turn = turns.take()) {
    const earlyMs = turn.dueAtMs - performance.now()
    if (earlyMs > 0) await pause(earlyMs)
    try {
      connection ??= await Connection.open()
      await transact(connection, turn.number)
      latenciesMs.push(performance.now() - turn.dueAtMs)
      if (run.connections === 'kept') continue
      connection.close()
    } catch (error) {
      if (refused.count++ === 0) refused.first = (error as Error).message.trim()
      connection?.destroy()
    }
    connection = null
  }
  connection?.close()
}

async function transact(connection: Connection, number: number): Promise<void> {
  await connection.ask(mail)
  await connection.ask(`RCPT TO:<${run.recipients[number % run.recipients.length]}>\r\n`)
  await connection.ask('DATA\r\n')
  await connection.ask(messages[number % messages.length]!)
}
