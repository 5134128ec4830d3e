// SMTP load and its far end: Postfix's smtp-source and a counting smtp-sink.
import { closeSync, existsSync, fstatSync, openSync, readSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { Scope } from '../../tests/support/until.ts'
import { freePort, runChild, startChild, untilReady } from '../children.ts'
import type { PreparedMail } from './verified-mail.ts'

export interface SmtpLoad {
  port: number
  sessions: number
  messages: number
  sizeBytes: number
  /** What is sent in place of so many bytes, and from whom; see `saveMail`. */
  mail?: SavedMail
  /** Whether each message takes a connection of its own, or sessions keep theirs. */
  connections: 'per-message' | 'kept'
}

/** A whole message in a file, its lines ending as smtp-source wants them. */
export interface SavedMail {
  path: string
  helo: string
  from: string
}

export interface Sink {
  port: number
  /** Messages taken since the start. */
  count(): number
  /** Resolves with the time (milliseconds since the epoch) at which `total` messages had been taken. */
  reach(total: number): Promise<number>
}

/** The one sender and the one recipient of every benchmark. */
export const sender = 'a@x.test'
export const recipient = 'u@bench.test'

const sourcePath = '/usr/sbin/smtp-source'
const sinkPath = '/usr/sbin/smtp-sink'

/** Sends the load and resolves with how long it took, in milliseconds, once every message has its 250. */
export async function sendBySmtp(load: SmtpLoad): Promise<number> {
  requireTool(sourcePath)
  const { sessions, messages, sizeBytes, port, mail } = load
  const content = mail
    ? ['-F', mail.path, '-M', mail.helo, '-f', mail.from]
    : ['-l', `${sizeBytes}`, '-f', sender]
  const startedMs = performance.now()
  await runChild(sourcePath, [
    ...(load.connections === 'kept' ? ['-d'] : []),
    ...['-s', `${sessions}`, '-m', `${messages}`, ...content, '-t', recipient],
    `127.0.0.1:${port}`,
  ])
  return performance.now() - startedMs
}

/** Writes a message, CRLF at each line end, to a file: smtp-source puts the CRs back, and doubles dots. */
export function saveMail(folder: string, { bytes, helo, from }: PreparedMail): SavedMail {
  const path = join(folder, `${from}-${bytes.length}.eml`)
  writeFileSync(path, bytes.toString('latin1').replaceAll('\r\n', '\n'), 'latin1')
  return { path, helo, from }
}

/** Starts smtp-sink on `port` (a free one); it takes everything and counts at each final dot. */
export async function startSink(scope: Scope, folder: string, port?: number): Promise<Sink> {
  requireTool(sinkPath)
  const listen = port ?? (await freePort())
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const child = startChild(scope, folder, sinkPath, [...user, '-c', `127.0.0.1:${listen}`, '2000'])
  await untilReady(child, 'smtp-sink listens', () => isListening(listen))
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
  return { port: listen, count, reach: (total) => reach(count, total) }
}

/** Whether something accepts connections on this port of 127.0.0.1. */
export function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true))
    socket.once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

async function reach(count: () => number, total: number): Promise<number> {
  // Gives up only when nothing moves: a slow peer is measured, a stuck one is named.
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

function requireTool(path: string): void {
  if (!existsSync(path)) throw new Error(`missing: ${path}, run bench/peers/install.sh`)
}
