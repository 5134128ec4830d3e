// The mail transactions of the SMTP client: one message to several recipients, with one transaction and one result each.

import { type Reply, reply, wordless } from '../reply.ts'
import type { OutgoingMessage } from './message.ts'
import { type Answer, type Fault, fault, type Step, type Timeouts, type Wire } from './wire.ts'

/** One recipient, and the return path of this recipient's copy. */
export interface RecipientEnvelope {
  /** Reverse path; the empty string for the null path. */
  from: string
  to: string
  /** An address, or the message's header, needs SMTPUTF8. */
  needsUtf8: boolean
}

export interface SendOptions {
  /** Called right before the bytes that finish a message. If `false`, the connection ends and nothing more is sent. */
  mayFinish?: () => boolean
  /**
   * Called with each result as soon as it is known, in the envelopes' order, with the envelope's index. `steps` is its
   * conversation. The first transaction of a connection also includes the steps of the opening.
   */
  onResult?: (index: number, result: RecipientResult, steps: readonly Step[]) => void
}

export type RecipientResult =
  /** A reply decided: 2xx delivered, 4xx refused for now, 5xx refused for good. */
  | { outcome: 'delivered' | 'refused'; reply: Reply; stage: Stage }
  /** The connection failed before any result. The message counts as never attempted. */
  | { outcome: 'untried' }
  /** The connection was lost between the message's end and the reply. A retry may deliver it twice. */
  | { outcome: 'unknown' }
  /** `mayFinish` returned false. */
  | { outcome: 'abandoned' }

export interface SendResult {
  /** One result for each envelope, in order. */
  recipients: RecipientResult[]
  /** Set if the connection broke before any recipient had an answer, or if the peer sent 421. */
  fault: Fault | null
  /** The peer's reply that caused the fault: a 421, or an unsolicited refusal. */
  reply: Reply | null
}

/** State of a connection that its transactions share. */
export interface PeerState {
  /** The steps before the first transaction. */
  opening: readonly Step[]
  extensions: ReadonlySet<string>
  /** The peer's limit; 0 for none. */
  maxSizeBytes: number
  timeouts: Timeouts
  /** Whether each transaction asks for REQUIRETLS. */
  requiresTls: boolean
  /** An earlier transaction left its envelope at the peer, or may have. */
  needsReset: boolean
  /** No transaction has run on this connection yet. */
  isNew: boolean
  /** The peer replied a moment ago, so the connection is probably still open. */
  isAwake: boolean
  /** The 421 with which the peer announced the end of the connection. */
  farewell: Reply | null
}

type Stage = 'mail' | 'rcpt' | 'data' | 'message'

const pipelinedMessageBytes = 64 * 1024
const sliceBytes = 256 * 1024
// An address goes out as it was accepted. It matches one of these if no character in it ends the path or the line.
const plainPath = /^[^\x00-\x20\x7f<>]*$/
const quotedPath = /^"(?:[^"\\\x00-\x1f\x7f]|\\[\x20-\x7e])*"@[^\x00-\x20\x7f<>]+$/

/**
 * Runs a transaction for each envelope, one after the other, until the connection is over. If the peer has PIPELINING,
 * a transaction begins as soon as the message before it was written. Never rejects.
 */
export async function transact(
  wire: Wire,
  state: PeerState,
  envelopes: readonly RecipientEnvelope[],
  message: OutgoingMessage,
  { mayFinish = () => true, onResult = () => {} }: SendOptions,
): Promise<SendResult> {
  const transactions = envelopes.map((to) => new Transaction(wire, state, to, message, mayFinish))
  let failed: Fault | null = null
  let isOver = false
  for (const [index, transaction] of transactions.entries()) {
    if (!isOver) failed = await transaction.run(transactions[index + 1] ?? null)
    isOver ||= failed !== null || transaction.result.outcome === 'abandoned'
    onResult(index, transaction.result, transaction.steps)
  }
  const recipients = transactions.map(({ result }) => result)
  const hasAnswered = recipients.some((result) => 'reply' in result)
  // A peer that answered one recipient and then hung up closed only this connection: the route has no fault.
  if (!failed || (hasAnswered && !state.farewell)) return { recipients, fault: null, reply: null }
  return { recipients, fault: failed, reply: state.farewell ?? wire.unasked }
}

/**
 * One message to one recipient, on a connection that carries other transactions before and after. Its states:
 *
 * - `waiting`: nothing was written yet. A message that needs a missing extension, or an address that cannot be sent, is
 *   refused here and never written.
 * - `begun`: `begin` was called, by `run` or, with PIPELINING, by the transaction before, once its message was written.
 *   With PIPELINING the envelope was written in one group, which ends with DATA if the peer has no CHUNKING. Without
 *   PIPELINING, each command is written after the reply to the previous command.
 * - `finished`: the last bytes of the message were written, so the peer may accept it. `mayFinish` was called right before.
 *   With PIPELINING and CHUNKING, a short message leaves in one group with its envelope if the peer replied a moment ago.
 *   Such a transaction (`#isWhole`) goes from `waiting` to `finished`.
 * - `abandoned`: `mayFinish` returned false while it was waiting or had begun. The connection ends as well, because
 *   written bytes cannot be taken back.
 *
 * The first reply that decides is the result: a refusal of MAIL, RCPT or DATA, or the reply to the message. The other
 * replies of its group are read and change nothing. If the connection ends before, the result is `unknown` if the
 * transaction had finished and the peer had not sent 421. Otherwise the result is `untried`. Each reply has its own
 * deadline, and only a reply or a fault of the wire wakes a transaction. A fault ends `run` and the connection.
 * A crash loses nothing here: the caller has recorded the attempt.
 */
class Transaction {
  readonly steps: Step[] = []
  readonly #wire: Wire
  readonly #state: PeerState
  readonly #envelope: RecipientEnvelope
  readonly #message: OutgoingMessage
  readonly #mayFinish: () => boolean
  #next: Transaction | null = null
  #progress: 'waiting' | 'begun' | 'finished' | 'abandoned' = 'waiting'
  #resets = false
  /** Envelope and message are written in one group. */
  #isWhole = false
  #settled: RecipientResult | null

  constructor(
    wire: Wire,
    state: PeerState,
    envelope: RecipientEnvelope,
    message: OutgoingMessage,
    mayFinish: () => boolean,
  ) {
    this.#wire = wire
    this.#state = state
    this.#envelope = envelope
    this.#message = message
    this.#mayFinish = mayFinish
    this.#settled = refuseUnsendable(state, envelope, message)
  }

  get result(): RecipientResult {
    if (this.#settled) return this.#settled
    if (this.#progress === 'abandoned') return { outcome: 'abandoned' }
    // RFC 5321 3.8: a peer that says 421 closes the connection. Commands it has not answered had no effect.
    return { outcome: this.#progress === 'finished' && !this.#state.farewell ? 'unknown' : 'untried' }
  }

  get #hasPipelining(): boolean {
    return this.#state.extensions.has('PIPELINING')
  }

  get #hasChunking(): boolean {
    return this.#state.extensions.has('CHUNKING')
  }

  /** Sends the message if it may be sent, and reads the answers. Returns the fault if the connection is over. */
  async run(next: Transaction | null): Promise<Fault | null> {
    this.#next = next
    this.begin()
    if (this.#progress === 'waiting') {
      if (!this.#settled) this.#abandon()
      return null
    }
    this.#state.needsReset = true
    if (this.#state.isNew) this.steps.push(...this.#state.opening)
    if (this.#isWhole) this.#beginNext()
    const failed =
      (await this.#reset()) ?? (await this.#mail()) ?? (await this.#recipient()) ?? (await this.#content())
    this.#state.isNew = false
    if (failed) this.#wire.destroy(failed.message)
    return failed
  }

  /** Writes the commands that need no earlier answer. Writes nothing if the message cannot or may not be sent. */
  begin(): void {
    if (this.#progress !== 'waiting' || this.#settled) return
    const fits = this.#message.bytes.length <= pipelinedMessageBytes
    this.#isWhole = this.#hasPipelining && this.#hasChunking && this.#state.isAwake && fits
    if (this.#isWhole && !this.#mayFinish()) return
    this.#progress = this.#isWhole ? 'finished' : 'begun'
    this.#resets = this.#state.needsReset
    if (this.#hasPipelining) this.#writeGroup()
  }

  // RFC 2920 3.1: the RSET and MAIL of the next transaction may follow the end of a message in the same group.
  #beginNext(): void {
    if (this.#hasPipelining) this.#next?.begin()
  }

  #mailCommand(): string {
    const { extensions } = this.#state
    let command = `MAIL FROM:<${this.#envelope.from}>`
    if (extensions.has('SIZE')) command += ` SIZE=${this.#message.bytes.length}`
    if (extensions.has('8BITMIME') && this.#message.isEightBit) command += ' BODY=8BITMIME'
    if (this.#envelope.needsUtf8) command += ' SMTPUTF8'
    // RFC 8689 4.2.1: the next server gets the sender's demand.
    if (this.#state.requiresTls) command += ' REQUIRETLS'
    return `${command}\r\n`
  }

  #writeGroup(): void {
    // RFC 2920 3.1: RSET, MAIL and RCPT may be anywhere in a group, DATA only at its end.
    let text = (this.#resets ? 'RSET\r\n' : '') + this.#mailCommand() + this.#rcptCommand()
    let replies = this.#resets ? 3 : 2
    if (!this.#hasChunking) text += 'DATA\r\n'
    if (this.#isWhole) text += this.#bdatCommand()
    if (!this.#hasChunking || this.#isWhole) replies++
    this.#wire.write(this.#isWhole ? [text, this.#message.bytes] : [text], replies)
  }

  #rcptCommand(): string {
    return `RCPT TO:<${this.#envelope.to}>\r\n`
  }

  #bdatCommand(): string {
    return `BDAT ${this.#message.bytes.length} LAST\r\n`
  }

  /** Writes the command now if the peer has no PIPELINING; otherwise it was written before. Then reads the reply. */
  async #say(command: string, timeoutMs: number): Promise<Answer> {
    if (!this.#hasPipelining) this.#wire.write([command], 1)
    return this.#read(command.slice(0, 4), timeoutMs)
  }

  async #read(command: string, timeoutMs: number): Promise<Answer> {
    const answer = await this.#wire.read(timeoutMs)
    if ('fault' in answer) return answer
    // The reply to RSET may name the sender of the mail before, perhaps another customer.
    const noted = command === 'RSET' ? wordless(answer.reply) : answer.reply
    this.steps.push({ command, atMs: performance.now(), reply: noted })
    this.#state.isAwake = true
    // RFC 5321 3.8: 421 may answer any command, and the peer closes the connection after it.
    if (answer.reply.code === 421) this.#state.farewell ??= answer.reply
    return answer
  }

  async #reset(): Promise<Fault | null> {
    if (!this.#resets) return null
    const answer = await this.#say('RSET\r\n', this.#state.timeouts.mailMs)
    if ('fault' in answer) return answer.fault
    return answer.reply.code < 300 ? null : (this.#goodbye() ?? unexpected(answer.reply, 'RSET'))
  }

  async #mail(): Promise<Fault | null> {
    const answer = await this.#say(this.#mailCommand(), this.#state.timeouts.mailMs)
    if ('fault' in answer) return answer.fault
    const { code } = answer.reply
    if (code < 300) return null
    if (code < 400) return unexpected(answer.reply, 'MAIL')
    // A 421 on a connection used before concerns the connection. On a new connection it refuses this sender. Only this
    // message then waits for its retry, so that one refused sender does not block all others on the route.
    if (code !== 421 || this.#state.isNew) this.#refuse(answer.reply, 'mail')
    return this.#goodbye()
  }

  async #recipient(): Promise<Fault | null> {
    if (this.#settled && !this.#hasPipelining) return null
    const answer = await this.#say(this.#rcptCommand(), this.#state.timeouts.rcptMs)
    if ('fault' in answer) return answer.fault
    const { code } = answer.reply
    if (code >= 300 && code < 400) return unexpected(answer.reply, 'RCPT')
    if (code >= 400) this.#refuse(answer.reply, 'rcpt')
    return this.#goodbye()
  }

  async #content(): Promise<Fault | null> {
    if (this.#isWhole) return this.#fate()
    const isAccepted = this.#settled === null
    if (!isAccepted && (this.#hasChunking || !this.#hasPipelining)) return null
    if (this.#hasChunking) return this.#body(this.#bdatCommand(), this.#message.bytes, '')
    const answer = await this.#say('DATA\r\n', this.#state.timeouts.dataStartMs)
    if ('fault' in answer) return answer.fault
    const { code } = answer.reply
    if (code >= 400) this.#refuse(answer.reply, 'data')
    if (code >= 400) return this.#goodbye()
    if (code < 300 || this.#isMailRefused) return unexpected(answer.reply, 'DATA')
    if (isAccepted) return this.#body('', this.#message.dotStuffed, '.\r\n')
    // RFC 2920 3.1: if every recipient was refused but DATA gets 354, the client sends a lone dot.
    this.#wire.write(['.\r\n'], 1)
    return this.#fate()
  }

  get #isMailRefused(): boolean {
    return this.#settled !== null && 'stage' in this.#settled && this.#settled.stage === 'mail'
  }

  /** Sends the message in slices, asks `mayFinish`, and sends the last bytes. */
  async #body(head: string, bytes: Buffer, tail: string): Promise<Fault | null> {
    let from = 0
    if (head !== '') this.#wire.write([head], 0)
    while (bytes.length - from > sliceBytes && !this.#wire.fault) {
      this.#wire.write([bytes.subarray(from, from + sliceBytes)], 0)
      from += sliceBytes
      await this.#wire.drained(this.#state.timeouts.dataBlockMs)
    }
    if (this.#wire.fault) return this.#interrupted(this.#wire.fault)
    if (!this.#mayFinish()) return this.#abandon()
    this.#progress = 'finished'
    this.#wire.write([bytes.subarray(from), tail], 1)
    this.#beginNext()
    return this.#fate()
  }

  /** The wire broke before the message's end. If the peer gave a reason, that is its answer to the message. */
  #interrupted(failed: Fault): Fault {
    const { unasked } = this.#wire
    if (unasked) this.#refuse(unasked, 'message')
    return failed
  }

  /** Reads the reply to the message itself. */
  async #fate(): Promise<Fault | null> {
    const answer = await this.#read(this.#hasChunking ? 'BDAT' : '.', this.#state.timeouts.dataFinalMs)
    if ('fault' in answer) return answer.fault
    const { code } = answer.reply
    if (code >= 300 && code < 400) return unexpected(answer.reply, "the message's end")
    if (code < 300) this.#deliver(answer.reply)
    else this.#refuse(answer.reply, 'message')
    // RFC 3030 2: the chunk of a refused BDAT is discarded. A peer that does not know the verb would read it as commands.
    if (this.#hasChunking && code >= 500 && code <= 502)
      return fault('protocol', 'the peer does not know BDAT')
    return this.#goodbye()
  }

  #deliver(answer: Reply): void {
    this.#state.needsReset = false
    this.#settled ??= { outcome: 'delivered', reply: answer, stage: 'message' }
  }

  #refuse(answer: Reply, stage: Stage): void {
    this.#settled ??= refused(answer, stage)
  }

  /** The fault after a 421; null if there was none. */
  #goodbye(): Fault | null {
    const { farewell } = this.#state
    return farewell && fault('refused', `421 ${farewell.text}`)
  }

  #abandon(): null {
    this.#progress = 'abandoned'
    this.#wire.destroy('abandoned')
    return null
  }
}

/** Refuses a message that must not or cannot be sent, with the reply that the peer would give. */
function refuseUnsendable(
  { extensions, maxSizeBytes }: PeerState,
  envelope: RecipientEnvelope,
  message: OutgoingMessage,
): RecipientResult | null {
  if (envelope.needsUtf8 && !extensions.has('SMTPUTF8'))
    // RFC 6531 3.2: without the extension an internationalized message must not be sent.
    return refused(
      reply(553, '5.6.7', 'the destination does not support internationalized mail (SMTPUTF8)'),
      'mail',
    )
  // RFC 1870 4: a message over the declared limit would always be refused.
  if (maxSizeBytes > 0 && message.bytes.length > maxSizeBytes)
    return refused(reply(552, '5.3.4', `the destination accepts at most ${maxSizeBytes} bytes`), 'mail')
  // RFC 6152 3: 8-bit content goes only to a peer that announced 8BITMIME.
  if (!extensions.has('8BITMIME') && message.isEightBit)
    return refused(reply(554, '5.6.3', 'the destination does not support 8-bit content (8BITMIME)'), 'mail')
  // Stops command injection: an address that would end the line or the path is never written.
  if (!isPath(envelope, 'from'))
    return refused(reply(553, '5.5.4', 'the sender address cannot be sent'), 'mail')
  if (envelope.to !== '' && isPath(envelope, 'to')) return null
  return refused(reply(553, '5.5.4', 'the recipient address cannot be sent'), 'rcpt')
}

function refused(answer: Reply, stage: Stage): RecipientResult {
  return { outcome: 'refused', reply: answer, stage }
}

function isPath({ needsUtf8, ...paths }: RecipientEnvelope, name: 'from' | 'to'): boolean {
  const address = paths[name]
  const isSane = plainPath.test(address) || quotedPath.test(address)
  return isSane && (needsUtf8 || /^[\x00-\x7f]*$/.test(address))
}

function unexpected({ code, text }: Reply, command: string): Fault {
  return fault('protocol', `${command} was answered by ${code} ${text}`)
}
