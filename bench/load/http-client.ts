// The HTTP load generator, a separate program: reads an HttpLoad from standard input and prints an HttpResult.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import type { HttpLoad, HttpResult } from './http.ts'
import { readPool } from './pool.ts'
import { latencyOf, type Turn, Turns } from './schedule.ts'

// Each connection has one request in flight, over plain sockets: on two cores a heavier client would measure itself.

const load = JSON.parse(await text(process.stdin)) as HttpLoad
const url = new URL(load.url)
const latenciesMs: number[] = []
const refused = { count: 0, first: '' }

const bodies = load.bodies ? readPool(load.bodies) : []
const heads = load.paths.map(buildHead)
const prefix = load.keys?.prefix ?? `bench-${randomBytes(6).toString('hex')}-`
const keyCount = load.keys?.count ?? Number.POSITIVE_INFINITY

const sockets = await Promise.all(Array.from({ length: load.connections }, open))
const startedAtMs = performance.timeOrigin + performance.now()
const turns = new Turns(load)
await Promise.all(sockets.map((socket) => exchange(socket)))
const endedAtMs = performance.timeOrigin + performance.now()
for (const socket of sockets) socket.destroy()

const result: HttpResult = {
  startedAtMs,
  endedAtMs,
  answered: latenciesMs.length,
  refused: refused.count,
  firstRefusal: refused.first,
  latencyMs: latencyOf(latenciesMs),
}
process.stdout.write(JSON.stringify(result))

async function open(): Promise<Socket> {
  const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true })
  await once(socket, 'connect')
  return socket
}

/** Sends requests one after the other until the load is used up. */
function exchange(socket: Socket): Promise<void> {
  let left = 0
  let dueAtMs = 0
  let refusal = ''
  return new Promise((resolve, reject) => {
    const next = () => {
      const turn = turns.take()
      if (turn === null) return resolve()
      dueAtMs = turn.dueAtMs
      const earlyMs = dueAtMs - performance.now()
      if (earlyMs > 0) setTimeout(ask, earlyMs, socket, turn)
      else ask(socket, turn)
    }
    const finish = () => {
      latenciesMs.push(performance.now() - dueAtMs)
      if (refusal && refused.count++ === 0) refused.first = refusal.slice(0, 300)
      refusal = ''
      next()
    }
    let head: Buffer | null = null
    socket.on('data', (chunk: Buffer) => {
      if (left === 0) {
        head = head ? Buffer.concat([head, chunk]) : chunk
        const end = head.indexOf('\r\n\r\n')
        if (end < 0) return
        const status = head.toString('latin1', 9, 12)
        left = end + 4 + contentLength(head.toString('latin1', 0, end + 2)) - head.length
        if (status !== load.expectStatus) refusal = head.toString('utf8')
        head = null
      } else {
        if (refusal) refusal += chunk.toString('utf8')
        left -= chunk.length
      }
      if (left === 0) finish()
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('the server closed a connection')))
    next()
  })
}

function ask(socket: Socket, { number }: Turn): void {
  const head = heads[number % heads.length]!
  if (load.method === 'GET') return void socket.write(`${head}\r\n`, 'latin1')
  const ordinal = number % keyCount
  const body = bodies[ordinal % bodies.length]!
  socket.cork()
  socket.write(
    `${head}content-length: ${body.length}\r\nidempotency-key: ${prefix}${ordinal.toString(16)}\r\n\r\n`,
    'latin1',
  )
  socket.write(body)
  socket.uncork()
}

/** The constant header lines of each request to `path`, without the final empty line. */
function buildHead(path: string): string {
  const lines = [
    `${load.method} ${path} HTTP/1.1`,
    `host: ${url.host}`,
    ...Object.entries(load.headers).map(([name, value]) => `${name}: ${value}`),
    ...(load.method === 'POST' ? ['content-type: application/json'] : []),
  ]
  return lines.map((line) => `${line}\r\n`).join('')
}

function contentLength(head: string): number {
  const length = /\r\ncontent-length: *(\d+)\r\n/i.exec(head)?.[1]
  if (length === undefined) throw new Error('an answer without content-length')
  return Number(length)
}
