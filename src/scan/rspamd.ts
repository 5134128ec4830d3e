// Checks mail with Rspamd over its HTTP protocol, and returns a missing answer as a value, without a long delay.
import { PassThrough, type Readable } from 'node:stream'
import { Agent, type Dispatcher } from 'undici'
import { CircuitBreaker } from '../base/circuit-breaker.ts'
import type { Log } from '../base/log.ts'
import { meters } from '../base/meters.ts'
import { divided } from '../base/share.ts'
import { readSpamFindings, type SpamFindings } from './rspamd-answer.ts'

/** The address at which Rspamd listens. */
export interface RspamdAddress {
  /** `http://127.0.0.1:11333`, without a path. */
  origin: string
  /** The password of its controller. The scanner itself needs none. */
  password: string | null
}

/** The bytes of a mail, or a function that opens them if they are in a blob. */
export type CheckedMail = Buffer | { open(): Readable; sizeBytes: number }

/** Facts about a mail from its SMTP conversation. */
export interface CheckedEnvelope {
  remoteIp: string
  helo: string
  /** Empty for the null reverse path. */
  from: string
  recipients: string[]
  /** The reverse name of `remoteIp`, confirmed by a lookup of that name. Null if there is none. */
  hostname: string | null
  /** The name of the mail in Rspamd's log. */
  queueId: string
}

export type SpamVerdict =
  | ({ status: 'judged' } & SpamFindings)
  /** `reason` is for operators. It contains no text that the mail could have chosen. */
  | { status: 'unavailable'; reason: string }

export interface RspamdOptions {
  log: Log
  /** Our own name, as the MX. */
  mtaName: string
  /** Time limit from the call to the last byte of the answer. */
  timeoutMs?: number
  /** Limit of concurrent calls. Mail beyond it is not checked. */
  maxCalls?: number
  /** The processes that divide `maxCalls`. */
  workers?: number
  /** After this many calls in a row without an answer, mail bypasses Rspamd. */
  maxFailures?: number
  /** Time that mail bypasses Rspamd before it is probed. */
  restMs?: number
}

/**
 * `silent`: Rspamd does not answer in time or at all, and more such calls would delay mail. `useless`: it is alive, but
 * its answer is invalid or ended early, as for mail larger than its `max_message`. `own`: not its fault.
 */
type Fault = { kind: 'silent' | 'useless' | 'own'; reason: string }
interface Limits {
  limitMs: number
  signal?: AbortSignal | undefined
}
type Question = Omit<Dispatcher.RequestOptions, 'origin' | 'signal'>
type Answer = { status: number; server: string; text: string }

const maxAnswerBytes = 256 << 10
const maxHeaderBytes = 16 << 10
/** The longest address is 320 characters. */
const maxFieldLength = 512
const maxRecipients = 100
const pingMs = 1_000
/** A call with less time than this proves nothing if it is not answered. */
const fairMs = 1_000

export class Rspamd {
  readonly #address: RspamdAddress
  readonly #log: Log
  readonly #mtaName: string
  readonly #timeoutMs: number
  readonly #maxCalls: number
  readonly #maxFailures: number
  readonly #agent: Agent
  readonly #circuit: CircuitBreaker
  readonly #closing = new AbortController()
  #calls = 0
  /** Faults in a row, except those of kind `own`. */
  #failures = 0
  #isDown = false

  constructor(address: RspamdAddress, options: RspamdOptions) {
    const {
      log,
      mtaName,
      timeoutMs = 5_000,
      maxCalls = 32,
      workers = 1,
      maxFailures = 3,
      restMs = 10_000,
    } = options
    this.#address = address
    this.#log = log
    this.#mtaName = mtaName
    this.#timeoutMs = timeoutMs
    this.#maxCalls = divided(maxCalls, workers)
    this.#maxFailures = maxFailures
    this.#circuit = new CircuitBreaker({ maxFailures, restMs, probe: () => this.#isAlive() })
    this.#agent = new Agent({
      allowH2: false,
      // Rspamd closes each connection after its answer. None is kept, so that no call finds its connection closed.
      pipelining: 0,
      connections: null,
      connect: { timeout: timeoutMs },
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: 0,
      bodyTimeout: 0,
    })
  }

  /**
   * Checks the mail with Rspamd. Never rejects. Takes at most `timeoutMs`, or `withinMs` if that is less. Takes no time
   * while Rspamd is unreachable or has as many calls as allowed. `signal` ends the check early.
   */
  async check(
    mail: CheckedMail,
    envelope: CheckedEnvelope,
    limits: { withinMs?: number; signal?: AbortSignal } = {},
  ): Promise<SpamVerdict> {
    const limitMs = Math.min(this.#timeoutMs, limits.withinMs ?? Number.POSITIVE_INFINITY)
    if (limitMs <= 0) return notAsked('no time was left')
    if (this.#calls >= this.#maxCalls) return notAsked('busy')
    if (!this.#circuit.admit()) return notAsked('passed over')
    const startedMs = performance.now()
    this.#calls++
    const answer = await this.#post(mail, envelope, { limitMs, signal: limits.signal })
    this.#calls--
    const findings = findingsOf(answer)
    const outcome = 'kind' in findings ? 'unavailable' : 'judged'
    meters.rspamdSeconds.observe({ outcome }, (performance.now() - startedMs) / 1000)
    return 'kind' in findings ? this.#noteFault(findings) : this.#noteAnswer(findings)
  }

  /** Rspamd's name and version, such as `rspamd/3.4`. Rejects with the reason if it cannot be read. */
  async version(): Promise<string> {
    const answer = await this.#request({ path: '/ping', method: 'GET' }, { limitMs: pingMs })
    if ('kind' in answer) throw new Error(answer.reason)
    if (answer.status !== 200 || answer.text.trim() !== 'pong')
      throw new Error('the program that answers is not Rspamd')
    return answer.server
  }

  /** Ends all open calls. From then on Rspamd counts as unavailable. */
  async close(): Promise<void> {
    this.#circuit.stop()
    this.#closing.abort()
    await this.#agent.destroy()
  }

  async #isAlive(): Promise<boolean> {
    return await this.version().then(
      () => true,
      () => false,
    )
  }

  async #post(mail: CheckedMail, envelope: CheckedEnvelope, limits: Limits): Promise<Answer | Fault> {
    const headers = this.#fields(envelope)
    const request = { path: '/checkv2', method: 'POST', headers } as const
    if (Buffer.isBuffer(mail)) return await this.#request({ ...request, body: mail }, limits)
    const source = mail.open()
    const faults: Error[] = []
    // Uses a second stream, because a fault of the connection destroys the stream that is sent.
    const body = new PassThrough().on('error', () => {})
    source.on('error', (error) => {
      faults.push(error)
      body.destroy(error)
    })
    const length = { 'content-length': String(mail.sizeBytes) }
    const sent = { ...request, headers: { ...headers, ...length }, body: source.pipe(body) }
    const answer = await this.#request(sent, limits)
    source.destroy()
    const [fault] = faults
    return fault ? { kind: 'own', reason: `the mail could not be read: ${fault.message}` } : answer
  }

  #fields({ remoteIp, helo, from, recipients, hostname, queueId }: CheckedEnvelope) {
    const fields: [name: string, value: string | null][] = [
      ['IP', remoteIp],
      ['Helo', helo],
      ['From', from || '<>'],
      ['Hostname', hostname],
      ['Queue-Id', queueId],
      ['MTA-Name', this.#mtaName],
      ['Password', this.#address.password],
    ]
    const set = fields.flatMap(([name, value]) => (value ? [[name, fieldValue(value)] as const] : []))
    const headers: Record<string, string | string[]> = Object.fromEntries(set)
    return { ...headers, Rcpt: recipients.slice(0, maxRecipients).map(fieldValue) }
  }

  async #request(request: Question, { limitMs, signal }: Limits): Promise<Answer | Fault> {
    const abort = new AbortController()
    const kind = limitMs < Math.min(fairMs, this.#timeoutMs) ? 'own' : 'silent'
    const giveUp = () => abort.abort({ kind, reason: 'no answer in time' } satisfies Fault)
    const timer = setTimeout(giveUp, limitMs)
    const cut = () => abort.abort({ kind: 'own', reason: 'interrupted' } satisfies Fault)
    const signals = [this.#closing.signal, ...(signal ? [signal] : [])]
    for (const each of signals) each.addEventListener('abort', cut, { once: true })
    try {
      if (signals.some(({ aborted }) => aborted)) cut()
      const { origin } = this.#address
      const answer = await this.#agent.request({
        ...request,
        origin,
        signal: abort.signal,
      } as Dispatcher.RequestOptions)
      const text = await readBounded(answer.body)
      if (text === null) return { kind: 'useless', reason: `an answer of more than ${maxAnswerBytes} bytes` }
      return { status: answer.statusCode, server: serverOf(answer.headers), text }
    } catch (error) {
      // Turns the exception of a failed call into a value.
      return abort.signal.aborted ? (abort.signal.reason as Fault) : faultOf(error)
    } finally {
      clearTimeout(timer)
      for (const each of signals) each.removeEventListener('abort', cut)
      // Closes the connection of an answer that was not read to its end.
      abort.abort()
    }
  }

  #noteAnswer(findings: SpamFindings): SpamVerdict {
    meters.rspamdChecks.inc({ outcome: knownActions.has(findings.action) ? findings.action : 'other' })
    this.#circuit.succeed()
    this.#failures = 0
    if (this.#isDown) this.#log.info({ rspamd: this.#address.origin }, 'Rspamd answers again')
    this.#isDown = false
    return { status: 'judged', ...findings }
  }

  /** Mail that Rspamd fails on looks like an outage. Only `silent` faults cause a bypass, as only they cause delay. */
  #noteFault({ kind, reason }: Fault): SpamVerdict {
    meters.rspamdChecks.inc({ outcome: 'unavailable' })
    if (kind === 'silent') this.#circuit.fail()
    else if (kind === 'useless') this.#circuit.succeed()
    else this.#circuit.release()
    if (kind !== 'own' && ++this.#failures >= this.#maxFailures && !this.#isDown) {
      this.#isDown = true
      const fields = { rspamd: this.#address.origin, reason }
      this.#log.warn(fields, 'Rspamd is unavailable: mail is accepted without a spam score')
    }
    return { status: 'unavailable', reason }
  }
}

/** Rspamd's built-in actions. Operators can define others. */
const knownActions = new Set([
  ...['no action', 'add header', 'rewrite subject', 'greylist', 'soft reject', 'reject'],
])

function notAsked(reason: string): SpamVerdict {
  meters.rspamdChecks.inc({ outcome: reason })
  return { status: 'unavailable', reason }
}

function findingsOf(answer: Answer | Fault): SpamFindings | Fault {
  if ('kind' in answer) return answer
  if (answer.status !== 200) return { kind: 'useless', reason: `HTTP status ${answer.status}` }
  return readSpamFindings(answer.text) ?? { kind: 'useless', reason: 'an unexpected answer' }
}

/** Security: a line end in a stranger's text would start a field of the stranger's choice. UTF-8 is sent as its bytes. */
function fieldValue(text: string): string {
  return Buffer.from(text.slice(0, maxFieldLength))
    .toString('latin1')
    .replace(/[\0-\x1f\x7f]/g, '?')
}

/** The body as text, or null if it is longer than an answer may be. */
async function readBounded(body: Dispatcher.ResponseData['body']): Promise<string | null> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of body as AsyncIterable<Buffer>) {
    bytes += piece.length
    if (bytes > maxAnswerBytes) return null
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString()
}

function serverOf({ server = 'unknown' }: Dispatcher.ResponseData['headers']): string {
  return String(server)
    .replace(/[^\x20-\x7e]/g, '?')
    .slice(0, 100)
}

/** Error codes of an unreachable Rspamd. */
const silentCodes = new Set([
  ...['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT'],
  ...['ENOTFOUND', 'EAI_AGAIN'],
])

function faultOf(error: unknown): Fault {
  const { code = '', message } = error as NodeJS.ErrnoException
  if (code === 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH')
    return { kind: 'own', reason: 'the size of the mail has changed' }
  return {
    kind: silentCodes.has(code) ? 'silent' : 'useless',
    // Node's own messages begin with their code or contain it.
    reason: (message.includes(code) ? message : `${code} ${message}`).slice(0, 200),
  }
}
