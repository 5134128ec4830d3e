// The SMTP load generator: a program of its own; reads an SmtpRun from standard input, prints an SmtpResult.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { readPool } from './pool.ts'
import { latencyOf, Turns } from './schedule.ts'
import type { SmtpResult, SmtpRun } from './smtp.ts'

// Says what Postfix's smtp-source says, and in lock step as that does: HELO, MAIL, RCPT, DATA, the message, QUIT. Measured
// over connections of one message each: 170 to 190 µs of CPU a message; smtp-source, which has one text, 130 to 150.

const run = JSON.parse(await text(process.stdin)) as SmtpRun
const messages = readPool(run.pool)
const mail = `MAIL FROM:<${run.from}>\r\n`
const latenciesMs: number[] = []
const refused = { count: 0, first: '' }
/** One for all connections: what was read is taken out before anything else is. */
const readBuffer = Buffer.alloc(4096)

/** A connection on which one question at a time is asked. */
class Connection {
  readonly #socket: Socket
  #reply = ''
  #answer: ((reply: string) => void) | null = null

  private constructor() {
    const callback = (size: number, buffer: Uint8Array) => this.#read(size, buffer as Buffer)
    const onread = { buffer: readBuffer, callback }
    this.#socket = connect({ host: '127.0.0.1', port: run.port, noDelay: true, onread })
    this.#socket.on('error', () => {}) // Closing follows, and is what counts.
    this.#socket.on('close', () => this.#end())
  }

  static async open(): Promise<Connection> {
    const connection = new Connection()
    await connection.ask('')
    await connection.ask(`HELO ${run.helo}\r\n`)
    return connection
  }

  /** The reply to these words; throws what is no 2xx or 3xx. */
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

/** Sends one message after the other until there is none left. */
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
