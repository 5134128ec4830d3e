// Plays a planned conversation with a mail server over a socket, and keeps the bytes of both directions.
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { type Plan, type Step, writeChunks } from './plan.ts'
import type { Phase, Transcript } from './transcript.ts'

export interface Conversation extends Transcript {
  /** The step that took too long, or null. */
  hang: string | null
  tookMs: number
  isSecured: boolean
}

/** Time limit for a reply of a server that is busy, or delays its reply on purpose. */
const replyTimeoutMs = 60_000
/** Time limit for a reply that may not come. */
const wildTimeoutMs = 200
/** Twenty refusals to a slowed peer, 5 s each, plus a margin. */
const endTimeoutMs = 180_000
/** More pieces of one write would only cost event loop iterations. */
const maxPieces = 300

/** Plays the plan, with `names` filled in for the braces. Never rejects. */
export async function converse(
  plan: Plan,
  port: number,
  names: Record<string, string>,
): Promise<Conversation> {
  const line = new Line(
    connectTcp({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true }),
    plan.cuts,
  )
  const fill = (bytes: string) =>
    bytes.replaceAll(/\{(\w+)\}/g, (whole, name: string) => names[name] ?? whole)
  const startMs = performance.now()
  await line.write(plan.opening)
  let hang: string | null = null
  if (!plan.isHasty && !(await line.hears(1, plan.isWild ? wildTimeoutMs : replyTimeoutMs)) && !plan.isWild)
    hang = 'the greeting'
  for (const step of plan.steps) {
    if (line.isOver || hang !== null) break
    if (!(await play(line, step, fill)) && !plan.isWild) hang = JSON.stringify(step).slice(0, 200)
  }
  if (!(await line.end(plan.ending))) hang ??= 'the end of the connection'
  return {
    phases: line.phases(),
    proxyBytes: plan.proxyBytes,
    isCut: plan.ending !== 'end' || line.isLost,
    hang,
    tookMs: performance.now() - startMs,
    isSecured: line.isSecured,
  }

  async function play(line: Line, step: Step, fill: (bytes: string) => string): Promise<boolean> {
    const timeoutMs = plan.isWild ? wildTimeoutMs : replyTimeoutMs
    if (step.step === 'pause') {
      for (let turn = 0; turn < step.turns; turn++) await new Promise((resolve) => setImmediate(resolve))
      return true
    }
    if (step.step === 'tls') {
      const isAnswered = await line.ask('STARTTLS\r\n', 1, timeoutMs)
      return isAnswered && (line.lastCode !== '220' || (await line.secure()))
    }
    if (step.step === 'message') {
      const isAnswered = await line.ask('DATA\r\n', 1, timeoutMs)
      return isAnswered && (line.lastCode !== '354' || (await line.ask(fill(step.bytes), 1, timeoutMs)))
    }
    if (step.step === 'chunks') {
      const chunks = writeChunks(step.chunks.map(fill))
      if (step.isPipelined) return await line.ask(chunks.join(''), chunks.length, timeoutMs)
      for (const chunk of chunks) if (!(await line.ask(chunk, 1, timeoutMs))) return false
      return true
    }
    if (step.step === 'write') {
      await line.write(fill(step.bytes))
      return true
    }
    const isAnswered = await line.ask(fill(step.bytes), step.replies, timeoutMs)
    // The server accepted a DATA it should have refused. An empty message ends it.
    return isAnswered && (line.lastCode !== '354' || plan.isWild || (await line.ask('.\r\n', 1, timeoutMs)))
  }
}

class Line {
  readonly #cuts: number[]
  readonly #phases: { sent: Buffer[]; received: Buffer[] }[] = [{ sent: [], received: [] }]
  #socket: Socket
  #cut = 0
  /** Replies received, and replies awaited. */
  #heard = 0
  #asked = 0
  #tail = ''
  lastCode = ''
  isOver = false
  isLost = false
  isSecured = false
  #isClosed = false
  #wake = () => {}

  constructor(socket: Socket, cuts: number[]) {
    this.#cuts = cuts
    this.#socket = socket
    this.#listen(socket)
  }

  phases(): Phase[] {
    return this.#phases.map(({ sent, received }) => ({
      sent: Buffer.concat(sent),
      received: Buffer.concat(received),
    }))
  }

  /** Writes in pieces of the planned sizes. Each piece is a separate segment unless the system joins them. */
  async write(text: string): Promise<void> {
    const bytes = Buffer.from(text, 'latin1')
    for (let at = 0, pieces = 0; at < bytes.length && !this.isOver; pieces++) {
      const size = pieces < maxPieces ? this.#cuts[this.#cut++ % this.#cuts.length]! : bytes.length
      const piece = bytes.subarray(at, at + size)
      at += piece.length
      if (!this.#socket.writable) return
      this.#phases.at(-1)!.sent.push(piece)
      if (!this.#socket.write(piece)) await this.#drained()
      else if (at < bytes.length) await new Promise((resolve) => setImmediate(resolve))
    }
  }

  async ask(text: string, replies: number, timeoutMs: number): Promise<boolean> {
    await this.write(text)
    return await this.hears(replies, timeoutMs)
  }

  /** Waits for `replies` more replies than awaited before. Returns false if they did not come in time. */
  async hears(replies: number, timeoutMs: number): Promise<boolean> {
    this.#asked = Math.max(this.#asked + replies, this.#heard)
    const wanted = this.#asked
    return await this.#until(() => this.#heard >= wanted || this.isOver, timeoutMs)
  }

  async secure(): Promise<boolean> {
    this.#socket.removeAllListeners('data')
    const secure = connectTls({ socket: this.#socket, rejectUnauthorized: false })
    this.#phases.push({ sent: [], received: [] })
    this.#tail = ''
    let isSecured = false
    secure.once('secureConnect', () => {
      isSecured = true
      this.#wake()
    })
    this.#listen(secure)
    this.#socket = secure
    await this.#until(() => isSecured || this.isOver, replyTimeoutMs)
    this.isSecured = isSecured
    return isSecured
  }

  /** Ends as planned. Returns whether the connection was closed in time. */
  async end(ending: Plan['ending']): Promise<boolean> {
    // QUIRK: Node loses bytes of the same segment if a TLS socket is ended while it reads them.
    await new Promise((resolve) => setImmediate(resolve))
    if (ending === 'end') this.#socket.end()
    // QUIRK: Node never closes a socket that is reset while its FIN is on the way.
    else if (ending === 'reset' && !this.isSecured && !this.isOver) this.#socket.resetAndDestroy()
    else this.#socket.destroy()
    const isClosed = await this.#until(() => this.#isClosed, endTimeoutMs)
    this.#socket.destroy()
    return isClosed
  }

  #listen(socket: Socket): void {
    socket.on('data', (bytes: Buffer) => this.#take(bytes))
    socket.on('end', () => {
      this.isOver = true
      // The socket is half open: answer the server's FIN.
      socket.end()
      this.#wake()
    })
    socket.on('error', () => {
      this.isLost = true
      this.isOver = true
      this.#wake()
    })
    socket.on('close', () => {
      this.isOver = true
      this.#isClosed = true
      this.#wake()
    })
  }

  #take(bytes: Buffer): void {
    this.#phases.at(-1)!.received.push(bytes)
    const lines = (this.#tail + bytes.toString('latin1')).split('\n')
    this.#tail = lines.pop()!
    for (const line of lines) {
      if (line[3] === '-') continue
      this.#heard++
      this.lastCode = line.slice(0, 3)
    }
    this.#wake()
  }

  /** If the peer stops reading, the end of the conversation reports it. */
  async #drained(): Promise<void> {
    const over = new AbortController()
    const options = { signal: AbortSignal.any([over.signal, AbortSignal.timeout(replyTimeoutMs)]) }
    const events = ['drain', 'close'].map((name) => once(this.#socket, name, options).catch(() => {}))
    await Promise.race(events)
    over.abort()
  }

  async #until(isSo: () => boolean, timeoutMs: number): Promise<boolean> {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      this.#wake()
    }, timeoutMs)
    while (!isSo() && !isLate) await new Promise<void>((resolve) => (this.#wake = resolve))
    clearTimeout(timer)
    return isSo()
  }
}
