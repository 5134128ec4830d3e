// SMTP load and its destination: the input of the program that sends, and Postfix's counting smtp-sink.
import { randomUUID } from 'node:crypto'
import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Scope } from '../../tests/support/until.ts'
import { stuff } from '../../tests/support/wire.ts'
import { freePort, limitOf, runChild, startChild, untilReady } from '../children.ts'
import { type SavedPool, savePool } from './pool.ts'
import type { Latency, Schedule } from './schedule.ts'
import type { PreparedMail } from './verified-mail.ts'

/** The input of the program that sends mail. */
export interface SmtpRun extends Schedule {
  port: number
  sessions: number
  /** Opens a new connection for each message, or keeps one per session. */
  connections: 'per-message' | 'kept'
  /** The messages as sent on the wire, each with its final dot. */
  pool: SavedPool
  helo: string
  from: string
  /** Recipients, used round robin. */
  recipients: readonly string[]
  /** The password for AUTH PLAIN, within TLS from the start. Without it the connection is plain. */
  password?: string
}

export interface SmtpResult {
  /** First connection and last reply, milliseconds since the epoch. */
  startedAtMs: number
  endedAtMs: number
  accepted: number
  refused: number
  firstRefusal: string
  /** The time from when a message was due until its 250. */
  latencyMs: Latency
}

/** Mails that are sent round robin, with the HELO name, sender and recipients for them. */
export type SavedMails = Pick<SmtpRun, 'pool' | 'helo' | 'from' | 'recipients' | 'password'>

export interface Sink {
  port: number
  pid: number
  /** Returns the number of messages accepted since the start. */
  count(): number
  /** Resolves with the time (milliseconds since the epoch) at which the sink had accepted `total` messages. */
  reach(total: number): Promise<number>
}

/** The one recipient of all inbound benchmarks. */
export const recipient = 'u@bench.test'

const client = fileURLToPath(new URL('smtp-client.ts', import.meta.url))
const sinkPath = '/usr/sbin/smtp-sink'

/** Runs the load in a separate program. Resolves once every message has its 250. Throws if one was refused. */
export async function sendBySmtp(run: SmtpRun): Promise<SmtpResult> {
  const result = await offerBySmtp(run)
  if (result.refused > 0)
    throw new Error(
      `${result.refused} of ${result.refused + result.accepted} messages were refused: ${result.firstRefusal}`,
    )
  return result
}

/** Runs the load like `sendBySmtp`, but only counts refusals. */
export async function offerBySmtp(run: SmtpRun): Promise<SmtpResult> {
  const options = { input: JSON.stringify(run), timeoutMs: limitOf(run) }
  return JSON.parse(await runChild(process.execPath, [client], options))
}

/** Writes messages, which have CRLF line ends, in their wire form. */
export function saveMails(
  folder: string,
  mails: readonly PreparedMail[],
  recipients: readonly string[],
): SavedMails {
  const { helo, from } = mails[0]!
  const onWire = mails.map(({ bytes }) => Buffer.from(stuff(bytes)))
  return { pool: savePool(join(folder, `${randomUUID()}.mails`), onWire), helo, from, recipients }
}

/** Starts smtp-sink, by default on 127.0.0.1 and a free port. It accepts everything and counts at each final dot. */
export async function startSink(
  scope: Scope,
  folder: string,
  { host = '127.0.0.1', port }: { host?: string; port?: number } = {},
): Promise<Sink> {
  if (!existsSync(sinkPath)) throw new Error(`missing: ${sinkPath}, run bench/peers/install.sh`)
  const listen = port ?? (await freePort())
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const child = startChild(scope, folder, sinkPath, [...user, '-c', `${host}:${listen}`, '2000'])
  await untilReady(child, 'smtp-sink listens', () => isListening(listen, host))
  const count = (): number => {
    const descriptor = openSync(child.outputPath, 'r')
    try {
      const { size } = fstatSync(descriptor)
      const tail = Buffer.alloc(Math.min(size, 256))
      readSync(descriptor, tail, 0, tail.length, size - tail.length)
      return Number(/mesg=\s*(\d+)\s*\r[^\r]*$/.exec(tail.toString('latin1'))?.[1] ?? 0)
    } finally {
      closeSync(descriptor)
    }
  }
  return { port: listen, pid: child.pid, count, reach: (total) => reach(count, total) }
}

/** Returns whether a program accepts connections on this port. */
export function isListening(port: number, host = '127.0.0.1'): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host)
    socket.once('connect', () => resolve(true))
    socket.once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

async function reach(count: () => number, total: number): Promise<number> {
  // Gives up only if the count stops growing. A slow peer is measured, and a stuck one is reported.
  let last = { count: -1, atMs: Date.now() }
  for (;;) {
    const counted = count()
    if (counted >= total) return Date.now()
    if (counted !== last.count) last = { count: counted, atMs: Date.now() }
    if (Date.now() - last.atMs > 30_000)
      throw new Error(`only ${counted} of ${total} messages reached the sink`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
