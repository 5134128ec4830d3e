// The server's side of one SMTP conversation: the effect of each command in each state. Uses no sockets.
import type { SecureContext } from 'node:tls'
import { type Reply, reply } from '../reply.ts'
import type { Envelope, Path, Peer, ReversePath, Tls } from './backend.ts'
import type { Command } from './command.ts'
import { Conduct } from './conduct.ts'
import { DotReader } from './dot-reader.ts'
import { Intake, localError } from './intake.ts'
import { LineEnds } from './line-ends.ts'
import { Login } from './login.ts'
import type { Peers } from './peers.ts'
import type { ServerLimits, SmtpServerOptions } from './server-options.ts'

/** The connection's next step. */
export type NextStep =
  | { next: 'command'; reply: Reply }
  | { next: 'close'; reply: Reply }
  | { next: 'tls'; reply: Reply; secureContext: SecureContext }
  /** The message follows, up to its final dot. */
  | { next: 'dots'; reply: Reply }
  /** `sizeBytes` bytes follow, and then the reply. */
  | { next: 'chunk'; sizeBytes: number }

const plain: Tls = { encrypted: false, protocol: 'none', cipher: 'none' }
const ok = reply(250, '2.0.0', 'OK')
const badOrder = reply(503, '5.5.1', 'Bad sequence of commands')
const noRecipients = reply(503, '5.5.1', 'No valid recipients')
// RFC 3207 4: until TLS has begun, 530 to all but NOOP, EHLO, STARTTLS and QUIT.
const tlsFirst = reply(530, '5.7.0', 'Must issue a STARTTLS command first')
const needsTls = reply(530, '5.7.10', 'REQUIRETLS is only possible within TLS')
const plainVerbs: readonly Command['verb'][] = ['NOOP', 'EHLO', 'STARTTLS', 'QUIT', 'BAD']
const badLineEnds = reply(550, '5.6.0', 'Message contains a bare CR, a bare LF or a NUL')

type Of<Verb extends Command['verb']> = Extract<Command, { verb: Verb }>

/**
 * One conversation. After `next: 'dots'` or `'chunk'` the bytes go to `takeDots` or `takeChunk`. Once they are complete,
 * `endDots` or `endChunk` returns the next step.
 */
export class Session {
  readonly #options: SmtpServerOptions
  readonly #conduct: Conduct
  readonly #login: Login
  #remote: Pick<Peer, 'address' | 'port' | 'tls'>
  #helo: { name: string; isExtended: boolean } | null = null
  #envelope: Envelope | null = null
  #intake: Intake | null = null
  #dots = new DotReader()
  #lineEnds = new LineEnds('message')
  #chunk = { isLast: false, sizeBytes: 0, refusal: noRecipients as Reply | null }

  constructor(
    options: SmtpServerOptions,
    counted: { limits: ServerLimits; peers: Peers },
    { address, port }: Pick<Peer, 'address' | 'port'>,
  ) {
    this.#options = options
    this.#conduct = new Conduct(options, counted, address)
    this.#login = new Login(options.backend)
    this.#remote = { address, port, tls: plain }
  }

  /** A message is being received: DATA or BDAT has begun and not ended. */
  get isReceiving(): boolean {
    return this.#intake !== null
  }

  /** Sets the peer that a trusted proxy named. */
  replacePeer(address: string, port: number): void {
    this.#remote = { ...this.#remote, address, port }
    this.#conduct.replaceAddress(address)
  }

  // RFC 3207 4.2: after the handshake the server forgets all that it learned before.
  startOver(tls: Tls): void {
    this.#reset()
    this.#helo = null
    this.#conduct.startOver()
    this.#login.startOver()
    this.#remote = { ...this.#remote, tls }
  }

  /** The next line answers a challenge of AUTH, and is no command. */
  get isChallenging(): boolean {
    return this.#login.isChallenging
  }

  /** Whether the connection is within TLS. */
  get isEncrypted(): boolean {
    return this.#remote.tls.encrypted
  }

  /** Called when the connection has ended. */
  abort(): void {
    this.#reset()
  }

  /** Called when the connection ends with this reply. */
  noteEnd(last: Reply): void {
    this.#conduct.noteReply(last)
  }

  /** Executes one command. Refusals count against the peer: they may be delayed, or end the session. */
  execute(command: Command): NextStep | Promise<NextStep> {
    const step = this.#obey(command)
    return step instanceof Promise ? step.then((settled) => this.#weigh(settled)) : this.#weigh(step)
  }

  /** Takes the line after a challenge, without its line feed. */
  async respond(line: Buffer): Promise<NextStep> {
    return this.#weigh(await this.#answerLogin(this.#login.respond(line, this.#remote.address)))
  }

  #weigh(step: NextStep): NextStep | Promise<NextStep> {
    if (step.next !== 'command' || step.reply.code < 500) return step
    return this.#conduct
      .answerRefused(step.reply)
      .then((last) => (last ? { next: 'close', reply: last } : step))
  }

  #obey(command: Command): NextStep | Promise<NextStep> {
    if (this.#login.isServed && !this.isEncrypted && !plainVerbs.includes(command.verb))
      return this.#answer(tlsFirst)
    switch (command.verb) {
      case 'EHLO':
      case 'HELO':
        return this.#greet(command)
      case 'MAIL':
        return this.#mail(command)
      case 'RCPT':
        return this.#recipient(command)
      case 'DATA':
        return this.#beginDots()
      case 'BDAT':
        return this.#beginChunk(command)
      case 'STARTTLS':
        return this.#startTls()
      case 'AUTH':
        return this.#authenticate(command)
      case 'BAD':
        return { next: command.isFatal ? 'close' : 'command', reply: command.reply }
      case 'QUIT':
        this.#reset()
        return { next: 'close', reply: reply(221, '2.0.0', 'Bye') }
      case 'RSET':
        this.#reset()
        return this.#answer(ok)
      case 'NOOP':
        return this.#answer(ok)
      case 'HELP':
        return this.#answer(reply(214, '2.0.0', 'See RFC 5321'))
      case 'VRFY':
        // RFC 5321 3.5.3: 252 for a server that will not verify addresses. Harvesters learn nothing.
        return this.#answer(
          reply(252, '2.5.0', 'Cannot VRFY user, but will accept message and attempt delivery'),
        )
      case 'EXPN':
        return this.#answer(reply(502, '5.5.1', 'Command not implemented'))
    }
  }

  /** Takes bytes of a DATA message. `used`: how many of them belonged to it. Await `settled` before the next call. */
  takeDots(bytes: Buffer): { used: number; isOver: boolean; settled: void | Promise<void> } {
    const { content, next, isOver } = this.#dots.read(bytes)
    if (this.#dots.isBroken && this.#intake?.refusal !== badLineEnds) this.#intake?.refuse(badLineEnds)
    return { used: next, isOver, settled: this.#intake?.write(content) }
  }

  async endDots(): Promise<NextStep> {
    return this.#answerMessage(await this.#intake!.end())
  }

  /** Takes bytes of the chunk that a BDAT announced. */
  takeChunk(bytes: Buffer): void | Promise<void> {
    if (this.#chunk.refusal !== null) return
    this.#lineEnds.check(bytes)
    return this.#intake?.write(bytes)
  }

  /** Called when all bytes of the chunk were taken. */
  endChunk(): NextStep | Promise<NextStep> {
    const { isLast, sizeBytes, refusal } = this.#chunk
    if (refusal !== null) return this.#weigh(this.#answer(refusal))
    const intake = this.#intake!
    if (isLast) this.#lineEnds.end()
    if (this.#lineEnds.isBroken) intake.refuse(badLineEnds)
    if (isLast) return this.endDots()
    // RFC 3030 2: after a failed chunk the transaction can only be reset. Each later chunk gets the same reply.
    if (intake.refusal) return { next: 'command', reply: intake.refusal }
    return this.#answer(reply(250, '2.0.0', `${sizeBytes} octets received`))
  }

  #answer(answer: Reply): NextStep {
    return { next: 'command', reply: answer }
  }

  #answerMessage(answer: Reply): NextStep {
    if (answer.code < 300) this.#conduct.noteTaken()
    else this.#conduct.noteReply(answer)
    this.#reset()
    return { next: 'command', reply: answer }
  }

  #reset(): void {
    this.#intake?.abort()
    this.#intake = null
    this.#envelope = null
  }

  #greet({ verb, name }: Of<'EHLO' | 'HELO'>): NextStep {
    this.#reset()
    const isExtended = verb === 'EHLO'
    const { hostname } = this.#options
    // The name by which one of our nodes proves itself is a secret: it must not appear in the message.
    this.#helo = { name: this.#conduct.recognize(name) ? hostname : name, isExtended }
    return this.#answer(
      reply(250, null, isExtended ? [hostname, ...this.#extensions()].join('\n') : hostname),
    )
  }

  #extensions(): string[] {
    const extensions = ['PIPELINING', `SIZE ${this.#options.maxSizeBytes}`, '8BITMIME', 'SMTPUTF8']
    extensions.push('ENHANCEDSTATUSCODES', 'CHUNKING')
    if (!this.#login.isServed) extensions.push('BINARYMIME')
    extensions.push(this.#limits())
    // RFC 8689 2: REQUIRETLS is announced only within TLS.
    if (this.isEncrypted) extensions.push('REQUIRETLS')
    // RFC 4954 4: AUTH is offered only where a password cannot be read on the way.
    if (this.#login.isServed && this.isEncrypted) extensions.push('AUTH PLAIN LOGIN')
    // RFC 3207 4.2: STARTTLS is not offered again inside TLS.
    if (!this.isEncrypted && this.#options.secureContext()) extensions.push('STARTTLS')
    return extensions
  }

  // RFC 9422 3: the limits that apply in this session. A session of one of our nodes has no message limit.
  #limits(): string {
    const { maxMessages } = this.#conduct
    const mailMax = maxMessages === null ? '' : ` MAILMAX=${maxMessages}`
    return `LIMITS RCPTMAX=${this.#options.maxRecipients}${mailMax}`
  }

  async #mail({ from }: Of<'MAIL'>): Promise<NextStep> {
    // RFC 5321 4.1.4: MAIL comes after HELO or EHLO, and not within another transaction.
    if (this.#helo === null || this.#envelope !== null) return this.#answer(badOrder)
    const helo = this.#helo
    // RFC 8689 2: the parameter is not known outside TLS, where it is not announced.
    if (from.requiresTls && !this.isEncrypted) return this.#answer(needsTls)
    const faulty = this.#login.refuseMail(from)
    if (faulty) return this.#answer(faulty)
    const last = await this.#conduct.beginMessage()
    if (last) return { next: 'close', reply: last }
    // RFC 1870 6.1: a message announced as too large is refused at once.
    if ((from.sizeBytes ?? 0) > this.#options.maxSizeBytes) {
      return this.#answer(reply(552, '5.3.4', 'Message too large'))
    }
    const refusal = await this.#ask(() => this.#login.backend!.begin?.(from) ?? null)
    if (refusal) return this.#answer(refusal)
    this.#envelope = { peer: this.#peer(helo, from), from, to: [] }
    return this.#answer(reply(250, '2.1.0', 'Sender OK'))
  }

  #peer({ name, isExtended }: { name: string; isExtended: boolean }, { needsUtf8 }: ReversePath): Peer {
    const secured = this.#remote.tls.encrypted ? 'S' : ''
    // RFC 6531 4.3: UTF8SMTP if SMTPUTF8 was given. RFC 3848 has no name for HELO inside TLS.
    const protocol = needsUtf8
      ? (`UTF8SMTP${secured}` as const)
      : isExtended
        ? (`ESMTP${secured}` as const)
        : 'SMTP'
    return { ...this.#remote, helo: name, protocol, isOwn: this.#conduct.isOwn, listedBy: [] }
  }

  async #recipient({ to, isWide }: Of<'RCPT'>): Promise<NextStep> {
    const envelope = this.#envelope
    if (envelope === null || this.#intake !== null) return this.#answer(badOrder)
    // RFC 6531 3.4: an address beyond ASCII needs a transaction that asked for SMTPUTF8.
    if (isWide && !envelope.from.needsUtf8)
      return this.#answer(reply(553, '5.6.7', 'Internationalized address requires SMTPUTF8'))
    // RFC 5321 4.5.3.1.10: recipients past the limit are 452, those before it are kept.
    if (envelope.to.length >= this.#options.maxRecipients) {
      return this.#answer(reply(452, '4.5.3', 'Too many recipients'))
    }
    const refusal = await this.#askRecipient(envelope, to)
    const turnedAway = await this.#conduct.refusal()
    if (turnedAway) return { next: 'close', reply: turnedAway }
    if (refusal !== null) return this.#answer(refusal)
    envelope.to.push(to)
    return this.#answer(reply(250, '2.1.5', 'Recipient OK'))
  }

  async #askRecipient(envelope: Envelope, to: Path): Promise<Reply | null> {
    const listing = await this.#conduct.listing()
    envelope.peer.listedBy = listing.listedBy
    const listed = this.#conduct.refuseListed(listing, envelope, to)
    return listed ?? (await this.#ask(() => this.#login.backend!.recipient(envelope, to)))
  }

  /** The backend's answer. */
  async #ask(question: () => Promise<Reply | null> | Reply | null): Promise<Reply | null> {
    try {
      return await question()
    } catch (error) {
      // The backend's bug: the peer gets 451 and retries.
      this.#report(error)
      return localError
    }
  }

  #beginDots(): NextStep {
    if (this.#envelope === null || this.#intake !== null) return this.#answer(badOrder)
    // RFC 5321 3.3: DATA without a valid recipient is 503 or 554.
    if (this.#envelope.to.length === 0) return this.#answer(noRecipients)
    // RFC 3030 3: a binary message comes by BDAT; DATA is 503.
    if (this.#envelope.from.body === 'BINARYMIME') return this.#answer(badOrder)
    this.#intake = this.#openIntake(this.#envelope)
    if (this.#intake === null) return this.#answerMessage(localError)
    this.#dots = new DotReader()
    return { next: 'dots', reply: reply(354, null, 'End with <CRLF>.<CRLF>') }
  }

  #beginChunk({ sizeBytes, isLast }: Of<'BDAT'>): NextStep {
    this.#chunk = { isLast, sizeBytes, refusal: this.#chunkRefusal() }
    return { next: 'chunk', sizeBytes }
  }

  // RFC 3030 2: BDAT out of order is 503, and its chunk is still read.
  #chunkRefusal(): Reply | null {
    if (this.#intake !== null) return null
    if (this.#envelope === null) return badOrder
    if (this.#envelope.to.length === 0) return noRecipients
    // RFC 3030 3: the body of a binary message may be any bytes. Its header must consist of lines, decisions/0027.
    this.#lineEnds = new LineEnds(this.#envelope.from.body === 'BINARYMIME' ? 'header' : 'message')
    this.#intake = this.#openIntake(this.#envelope)
    return this.#intake === null ? localError : null
  }

  #openIntake(envelope: Envelope): Intake | null {
    try {
      const incoming = this.#login.backend!.message(envelope)
      const { maxSizeBytes } = this.#options
      return new Intake(incoming, { maxSizeBytes, report: (error) => this.#report(error) })
    } catch (error) {
      // The backend's bug: the peer gets 451 and retries.
      this.#report(error)
      return null
    }
  }

  async #authenticate({ mechanism, initial }: Of<'AUTH'>): Promise<NextStep> {
    // RFC 4954 4: AUTH comes after EHLO, and neither within a transaction nor twice.
    const isEarly = this.#helo === null || this.#envelope !== null
    if (this.#login.isServed && isEarly) return this.#answer(badOrder)
    return await this.#answerLogin(this.#login.begin(mechanism, initial, this.#remote.address))
  }

  async #answerLogin(step: Reply | Promise<Reply>): Promise<NextStep> {
    try {
      const answer = await step
      if (answer.code === 235) this.#conduct.noteLogin()
      return this.#answer(answer)
    } catch (error) {
      // The gate's bug: the client gets 451 and tries again.
      this.#report(error)
      return this.#answer(localError)
    }
  }

  #startTls(): NextStep {
    if (this.#helo === null || this.isEncrypted) return this.#answer(badOrder)
    const secureContext = this.#options.secureContext()
    // RFC 3207 4: 454 if TLS is not available.
    if (secureContext === null) return this.#answer(reply(454, '4.7.0', 'TLS not available'))
    return { next: 'tls', reply: reply(220, '2.0.0', 'Ready to start TLS'), secureContext }
  }

  #report(error: unknown): void {
    this.#options.log.error({ err: error, peer: this.#remote.address }, 'mail backend failed')
  }
}
