// One mail transaction of the SMTP client: envelope and message out, one outcome for each recipient back.
import { dotStuffed, hasEightBit } from './client-message.ts'
import { type Answer, type Fault, fault, type Wire } from './client-wire.ts'
import { type Reply, reply } from './reply.ts'

/** How long the peer may take at each step. */
export interface Timeouts {
  connectMs: number
  bannerMs: number
  ehloMs: number
  mailMs: number
  rcptMs: number
  dataStartMs: number
  dataBlockMs: number
  dataFinalMs: number
  quitMs: number
}

export interface Envelope {
  /** Reverse path; the empty string for the null path. */
  from: string
  to: readonly string[]
  /** The addresses or the message's header need SMTPUTF8. */
  utf8: boolean
}

export interface SendOptions {
  /** Asked right before what would finish the message; `false` breaks off, and the recipients are `abandoned`. */
  mayFinish?: () => boolean
}

export type RecipientResult =
  /** A reply decided: 2xx delivered; refused by 4xx for now, by 5xx for good. */
  | { outcome: 'delivered' | 'refused'; reply: Reply; stage: 'mail' | 'rcpt' | 'data' | 'message' }
  /** A fault of the route came before the message's fate: as if it had not been tried. */
  | { outcome: 'untried' }
  /** The connection was lost after the message's end, before the reply: try again, it may arrive twice. */
  | { outcome: 'unknown' }
  /** `mayFinish` said no. */
  | { outcome: 'abandoned' }

export interface TransactionResult {
  /** One for each of the envelope's `to`, in order. */
  recipients: RecipientResult[]
  /** Set when the connection broke or the peer said 421. */
  fault: Fault | null
  /** The peer's own words to that fault: a 421, or a refusal out of turn. */
  reply: Reply | null
}

/** What the transaction knows of its connection. */
export interface PeerState {
  extensions: ReadonlySet<string>
  /** The peer's limit; 0 for none. */
  maxSizeBytes: number
  timeouts: Timeouts
  /** The last transaction left an envelope behind. */
  needsReset: boolean
  /** No transaction went before this one. */
  fresh: boolean
  /** The peer has just spoken, so that a silent end of the connection is unlikely. */
  awake: boolean
}

type Stage = 'mail' | 'rcpt' | 'data' | 'message'

const pipelinedMessageBytes = 64 * 1024
const sliceBytes = 256 * 1024
// An address in the form it had when it was accepted: nothing in it can end the path or the line.
const plainPath = /^[^\x00-\x20\x7f<>]*$/
const quotedPath = /^"(?:[^"\\\x00-\x1f\x7f]|\\[\x20-\x7e])*"@[^\x00-\x20\x7f<>]+$/

/** Runs one transaction. Never rejects. Afterwards `state.needsReset` says what the next one must begin with. */
export function transact(
  wire: Wire,
  state: PeerState,
  envelope: Envelope,
  message: Buffer,
  options: SendOptions,
): Promise<TransactionResult> {
  return new Transaction(wire, state, envelope, message, options).run()
}

class Transaction {
  readonly #wire: Wire
  readonly #state: PeerState
  readonly #envelope: Envelope
  readonly #message: Buffer
  readonly #mayFinish: () => boolean
  readonly #pipelining: boolean
  readonly #chunking: boolean
  /** Envelope and message leave in one group. */
  readonly #whole: boolean
  readonly #results: (RecipientResult | null)[]
  /** Places in the envelope of the recipients that the peer is asked for. */
  #asked: readonly number[] = []
  #accepted = 0
  #mailRefused = false
  #finished = false
  #abandoned = false
  #farewell: Reply | null = null

  constructor(wire: Wire, state: PeerState, envelope: Envelope, message: Buffer, options: SendOptions) {
    this.#wire = wire
    this.#state = state
    this.#envelope = envelope
    this.#message = message
    this.#mayFinish = options.mayFinish ?? (() => true)
    this.#pipelining = state.extensions.has('PIPELINING')
    this.#chunking = state.extensions.has('CHUNKING')
    this.#whole = this.#pipelining && this.#chunking && state.awake && message.length <= pipelinedMessageBytes
    this.#results = envelope.to.map(() => null)
  }

  async run(): Promise<TransactionResult> {
    this.#refuseUnsendable()
    this.#asked = this.#results.flatMap((result, index) => (result === null ? [index] : []))
    if (this.#asked.length === 0) return this.#result(null)
    if (this.#whole && !this.#mayFinish()) return this.#abandon()
    if (this.#pipelining) this.#writeGroup()
    const failed =
      (await this.#reset()) ?? (await this.#mail()) ?? (await this.#recipients()) ?? (await this.#content())
    if (failed) this.#wire.destroy(failed.message)
    return this.#abandoned ? this.#abandon() : this.#result(failed)
  }

  /** Refuses what must not or cannot go onto this wire, by the reply that the peer would have given. */
  #refuseUnsendable(): void {
    const { extensions, maxSizeBytes } = this.#state
    const { from, to, utf8 } = this.#envelope
    if (utf8 && !extensions.has('SMTPUTF8'))
      // RFC 6531 3.2: without the extension an internationalized message must not be sent.
      this.#refuse(reply(553, '5.6.7', 'the destination does not take internationalized mail'), 'mail')
    // RFC 1870 4: a message over the declared limit would always be refused.
    else if (maxSizeBytes > 0 && this.#message.length > maxSizeBytes)
      this.#refuse(reply(552, '5.3.4', `the destination takes ${maxSizeBytes} bytes at most`), 'mail')
    // RFC 6152 3: 8-bit content goes only to a peer that announced 8BITMIME.
    else if (!extensions.has('8BITMIME') && hasEightBit(this.#message))
      this.#refuse(reply(554, '5.6.3', 'the destination does not take 8-bit content'), 'mail')
    else if (!this.#isPath(from))
      this.#refuse(reply(553, '5.5.4', 'the sender address cannot be sent'), 'mail')
    for (const [index, address] of to.entries()) {
      // Stops command injection: an address that would end the line, or the path, never reaches the wire.
      if (address === '' || !this.#isPath(address))
        this.#settle(index, reply(553, '5.5.4', 'the recipient address cannot be sent'), 'rcpt')
    }
  }

  #isPath(address: string): boolean {
    const { utf8 } = this.#envelope
    const sane = plainPath.test(address) || quotedPath.test(address)
    return sane && (utf8 || /^[\x00-\x7f]*$/.test(address))
  }

  #mailCommand(): string {
    const { extensions } = this.#state
    let command = `MAIL FROM:<${this.#envelope.from}>`
    if (extensions.has('SIZE')) command += ` SIZE=${this.#message.length}`
    if (extensions.has('8BITMIME') && hasEightBit(this.#message)) command += ' BODY=8BITMIME'
    if (this.#envelope.utf8) command += ' SMTPUTF8'
    return `${command}\r\n`
  }

  #writeGroup(): void {
    // RFC 2920 3.1: RSET, MAIL and RCPT stand anywhere in a group, DATA only at its end.
    const rcpts = this.#asked.map((index) => this.#rcptCommand(index))
    let text = (this.#state.needsReset ? 'RSET\r\n' : '') + this.#mailCommand() + rcpts.join('')
    let replies = rcpts.length + (this.#state.needsReset ? 2 : 1)
    if (!this.#chunking) text += 'DATA\r\n'
    if (this.#whole) text += this.#bdatCommand()
    if (!this.#chunking || this.#whole) replies++
    if (this.#whole) this.#finished = true
    this.#wire.write(this.#whole ? [text, this.#message] : [text], replies)
  }

  #rcptCommand(index: number): string {
    return `RCPT TO:<${this.#envelope.to[index]}>\r\n`
  }

  #bdatCommand(): string {
    return `BDAT ${this.#message.length} LAST\r\n`
  }

  /** Lock-step writes now what a pipelining peer already has; then reads the reply. */
  async #say(command: string, timeoutMs: number): Promise<Answer> {
    if (!this.#pipelining) this.#wire.write([command], 1)
    return this.#read(timeoutMs)
  }

  async #read(timeoutMs: number): Promise<Answer> {
    const answer = await this.#wire.read(timeoutMs)
    // RFC 5321 3.8: 421 may answer any command, and the peer closes the connection after it.
    if ('reply' in answer && answer.reply.code === 421) this.#farewell ??= answer.reply
    return answer
  }

  async #reset(): Promise<Fault | null> {
    if (!this.#state.needsReset) return null
    const answer = await this.#say('RSET\r\n', this.#state.timeouts.mailMs)
    if ('fault' in answer) return answer.fault
    if (answer.reply.code >= 300) return this.#goodbye() ?? unexpected(answer.reply, 'RSET')
    this.#state.needsReset = false
    return null
  }

  async #mail(): Promise<Fault | null> {
    const answer = await this.#say(this.#mailCommand(), this.#state.timeouts.mailMs)
    if ('fault' in answer) return answer.fault
    const { code } = answer.reply
    this.#state.needsReset = true
    if (code < 300) return null
    if (code < 400) return unexpected(answer.reply, 'MAIL')
    this.#mailRefused = true
    // A 421 on a connection used before speaks of the connection; on a new one it answers this sender, who then waits
    // by the message's schedule, so that one refused sender cannot stand before everybody else on the route.
    if (code !== 421 || this.#state.fresh) this.#refuse(answer.reply, 'mail')
    return this.#goodbye()
  }

  async #recipients(): Promise<Fault | null> {
    if (this.#mailRefused && !this.#pipelining) return null
    for (const index of this.#asked) {
      const answer = await this.#say(this.#rcptCommand(index), this.#state.timeouts.rcptMs)
      if ('fault' in answer) return answer.fault
      const { code } = answer.reply
      if (code >= 300 && code < 400) return unexpected(answer.reply, 'RCPT')
      if (code >= 400) this.#settle(index, answer.reply, 'rcpt')
      else if (!this.#mailRefused) this.#accepted++
      if (this.#farewell) return this.#goodbye()
    }
    return null
  }

  async #content(): Promise<Fault | null> {
    if (this.#whole) return this.#fate()
    if (this.#accepted === 0 && (this.#chunking || !this.#pipelining)) return null
    if (this.#chunking) return this.#body(this.#bdatCommand(), this.#message, '')
    const answer = await this.#say('DATA\r\n', this.#state.timeouts.dataStartMs)
    if ('fault' in answer) return answer.fault
    const { code } = answer.reply
    if (code >= 400) this.#refuse(answer.reply, 'data')
    if (code >= 400) return this.#goodbye()
    if (code < 300 || this.#mailRefused) return unexpected(answer.reply, 'DATA')
    if (this.#accepted > 0) return this.#body('', dotStuffed(this.#message), '.\r\n')
    // RFC 2920 3.1: 354 although every recipient was refused is answered by a lone dot.
    this.#wire.write(['.\r\n'], 1)
    return this.#fate()
  }

  /** Sends the message in slices, asks whether it may be finished, and sends what finishes it. */
  async #body(head: string, bytes: Buffer, tail: string): Promise<Fault | null> {
    let from = 0
    if (head !== '') this.#wire.write([head], 0)
    while (bytes.length - from > sliceBytes && !this.#wire.fault) {
      this.#wire.write([bytes.subarray(from, from + sliceBytes)], 0)
      from += sliceBytes
      await this.#wire.drained(this.#state.timeouts.dataBlockMs)
    }
    if (this.#wire.fault) return this.#interrupted(this.#wire.fault)
    this.#abandoned = !this.#mayFinish()
    if (this.#abandoned) return null
    this.#finished = true
    this.#wire.write([bytes.subarray(from), tail], 1)
    return this.#fate()
  }

  /** The wire broke before the message's end; where the peer said why, that is its answer to the message. */
  #interrupted(failed: Fault): Fault {
    const { unasked } = this.#wire
    if (unasked) this.#refuse(unasked, 'message')
    return failed
  }

  /** The reply to the message itself. */
  async #fate(): Promise<Fault | null> {
    const answer = await this.#read(this.#state.timeouts.dataFinalMs)
    if ('fault' in answer) return answer.fault
    const { code } = answer.reply
    if (code >= 300 && code < 400) return unexpected(answer.reply, "the message's end")
    if (code >= 400) this.#refuse(answer.reply, 'message')
    else this.#deliver(answer.reply)
    // RFC 3030 2: the chunk of a refused BDAT is discarded; a peer that does not know the verb would read it as commands.
    if (this.#chunking && code >= 500 && code <= 502) this.#wire.destroy('the peer does not know BDAT')
    return this.#goodbye()
  }

  #deliver(answer: Reply): void {
    this.#state.needsReset = false
    for (const [index, result] of this.#results.entries())
      if (result === null) this.#results[index] = { outcome: 'delivered', reply: answer, stage: 'message' }
  }

  /** Refuses every recipient that has no result yet. */
  #refuse(answer: Reply, stage: Stage): void {
    for (const index of this.#results.keys()) this.#settle(index, answer, stage)
  }

  #settle(index: number, answer: Reply, stage: Stage): void {
    this.#results[index] ??= { outcome: 'refused', reply: answer, stage }
  }

  /** The fault that a 421 is; what was not answered before it did not happen. */
  #goodbye(): Fault | null {
    if (!this.#farewell) return null
    this.#finished = false
    return fault('refused', `421 ${this.#farewell.text}`)
  }

  #abandon(): TransactionResult {
    this.#wire.destroy('abandoned')
    const recipients = this.#results.map((result) => result ?? { outcome: 'abandoned' as const })
    return { recipients, fault: null, reply: null }
  }

  #result(failed: Fault | null): TransactionResult {
    const decided = !this.#results.includes(null)
    const outcome = this.#finished ? 'unknown' : 'untried'
    const recipients = this.#results.map((result) => result ?? ({ outcome } as const))
    // A peer that refused everybody and hung up has answered: that is no fault of the route.
    if (!failed || (decided && !this.#farewell)) return { recipients, fault: null, reply: null }
    return { recipients, fault: failed, reply: this.#farewell ?? this.#wire.unasked }
  }
}

function unexpected({ code, text }: Reply, command: string): Fault {
  return fault('protocol', `${command} was answered by ${code} ${text}`)
}
