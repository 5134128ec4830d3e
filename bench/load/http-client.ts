// The HTTP load generator: a program of its own; reads an HttpLoad from standard input, prints an HttpResult.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import type { HttpLoad, HttpResult } from './http.ts'

// One request in flight a connection, over plain sockets: on two cores a heavier client would measure itself.

const load = JSON.parse(await text(process.stdin)) as HttpLoad
const url = new URL(load.url)
const keyLength = 16
const latenciesMs: number[] = []
const refused = { count: 0, first: '' }
let sent = 0

const sockets = await Promise.all(Array.from({ length: load.connections }, open))
const startedAtMs = performance.timeOrigin + performance.now()
const beganMs = performance.now()
const deadlineMs = beganMs + (load.durationMs ?? Number.POSITIVE_INFINITY)
const prefix = load.keys?.prefix ?? `bench-${randomBytes(6).toString('hex')}-`
const keyCount = load.keys?.count ?? Number.POSITIVE_INFINITY
const paceMs = load.perSecond === undefined ? 0 : 1000 / load.perSecond
await Promise.all(sockets.map((socket) => exchange(socket)))
const endedAtMs = performance.timeOrigin + performance.now()
for (const socket of sockets) socket.destroy()

latenciesMs.sort((a, b) => a - b)
const result: HttpResult = {
  startedAtMs,
  endedAtMs,
  answered: latenciesMs.length,
  refused: refused.count,
  firstRefusal: refused.first,
  latencyMs: { p50: percentile(0.5), p95: percentile(0.95), p99: percentile(0.99) },
}
process.stdout.write(JSON.stringify(result))

async function open(): Promise<Socket> {
  const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true })
  await once(socket, 'connect')
  return socket
}

/** Sends requests one after the other until the load is used up. */
function exchange(socket: Socket): Promise<void> {
  const requests = load.paths.map(buildRequest)
  let left = 0
  let sentAtMs = 0
  let refusal = ''
  return new Promise((resolve, reject) => {
    const next = () => {
      if (sent >= (load.requests ?? Number.POSITIVE_INFINITY) || performance.now() >= deadlineMs)
        return resolve()
      const number = sent++
      if (paceMs === 0) return ask(number)
      // What waits for a free connection has waited for its answer as well.
      const dueAtMs = beganMs + number * paceMs
      const earlyMs = dueAtMs - performance.now()
      if (earlyMs > 0) setTimeout(ask, earlyMs, number, dueAtMs)
      else ask(number, dueAtMs)
    }
    const ask = (number: number, atMs = performance.now()) => {
      const { bytes, keyAt } = requests[number % requests.length]!
      if (keyAt >= 0) bytes.write((number % keyCount).toString(16).padStart(keyLength, '0'), keyAt, 'latin1')
      sentAtMs = Math.min(atMs, performance.now())
      socket.write(bytes)
    }
    const finish = () => {
      latenciesMs.push(performance.now() - sentAtMs)
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

function buildRequest(path: string): { bytes: Buffer; keyAt: number } {
  const body = load.body ?? ''
  const key = `idempotency-key: ${prefix}`
  const lines = [
    `${load.method} ${path} HTTP/1.1`,
    `host: ${url.host}`,
    ...Object.entries(load.headers).map(([name, value]) => `${name}: ${value}`),
    ...(body ? ['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`] : []),
    ...(load.method === 'POST' ? [key + '0'.repeat(keyLength)] : []),
  ]
  const head = `${lines.join('\r\n')}\r\n\r\n`
  const keyAt = head.indexOf(key)
  return {
    bytes: Buffer.from(head + body),
    keyAt: keyAt < 0 ? -1 : Buffer.byteLength(head.slice(0, keyAt + key.length)),
  }
}

function contentLength(head: string): number {
  const length = /\r\ncontent-length: *(\d+)\r\n/i.exec(head)?.[1]
  if (length === undefined) throw new Error('an answer without content-length')
  return Number(length)
}

function percentile(share: number): number {
  return latenciesMs[Math.min(latenciesMs.length - 1, Math.floor(latenciesMs.length * share))] ?? 0
}
