// The SMTP client: connects, greets, secures and authenticates, then carries one transaction after another.

import { type Reply, replyLine, wordless } from '../reply.ts'
import type { Violation } from './dane.ts'
import { OutgoingMessage } from './message.ts'
import type { PeerReply } from './reply-reader.ts'
import {
  isMandatory,
  nameOf,
  opportunistic,
  plaintext,
  serverNameOf,
  type TlsRequirement,
  violationOf,
} from './tls-requirement.ts'
import {
  type PeerState,
  type RecipientEnvelope,
  type SendOptions,
  type SendResult,
  transact,
} from './transaction.ts'
import { type Answer, type Fault, fault, type Step, type Timeouts, Wire } from './wire.ts'

export interface ConnectOptions {
  /** The peer's name, for TLS and for logs. */
  host: string
  /** IP address to connect to. The client does no DNS lookup. */
  address: string
  port: number
  /** The local address to connect from, of the same family as `address`. If absent, the system chooses. */
  localAddress?: string
  /** Our name in EHLO. */
  ehloName: string
  /** `opportunistic` upgrades if STARTTLS is offered; `required` fails if it is not; `implicit` is TLS from the start. */
  tls: 'none' | 'opportunistic' | 'required' | 'implicit'
  /** `host`: the certificate must be valid for `host`. Default: `host` for `required` and `implicit`, otherwise `none`. */
  tlsVerify?: 'host' | 'none'
  /** The requirement of the recipients' domain. A mandatory one makes `opportunistic` TLS required and verified. */
  requirement?: TlsRequirement
  /** `REQUIRETLS`: the server must announce it within TLS, and each transaction asks for it (RFC 8689). */
  demand?: 'REQUIRETLS'
  /** Certificate authorities (PEM) to trust instead of the system's. */
  tlsAuthorities?: string
  /** For a smarthost: AUTH PLAIN or LOGIN, only over TLS (verified as `tlsVerify` says) or to a loopback address. */
  auth?: { user: string; password: string }
  timeouts?: Partial<Timeouts>
  /** Aborting it ends the connection at once, at any step. */
  signal?: AbortSignal
  /** Steps that failed at other hosts before. They begin the conversation of the first transaction. */
  earlier?: readonly Step[]
}

/** The reason why there is no usable connection. `reply` is set if a reply of the peer was the reason. */
export interface ConnectFault {
  fault: Fault
  reply: Reply | null
  /** How the server violates the requirement, if that is the reason. */
  violation?: Violation
  /** The demand that the server does not know, if that is the reason. */
  lacking?: 'REQUIRETLS'
  /** Our address on the connection, if there was one. */
  localAddress?: string | null
}

const minute = 60_000
const defaultTimeouts: Timeouts = {
  connectMs: minute / 2,
  // RFC 5321 4.5.3.2.1: initial 220 message, 5 minutes.
  bannerMs: 5 * minute,
  ehloMs: 5 * minute,
  // RFC 5321 4.5.3.2.2: MAIL command, 5 minutes.
  mailMs: 5 * minute,
  // RFC 5321 4.5.3.2.3: RCPT command, 5 minutes.
  rcptMs: 5 * minute,
  // RFC 5321 4.5.3.2.4: DATA initiation, 2 minutes.
  dataStartMs: 2 * minute,
  // RFC 5321 4.5.3.2.5: data block, 3 minutes.
  dataBlockMs: 3 * minute,
  // RFC 5321 4.5.3.2.6: data termination, 10 minutes.
  dataFinalMs: 10 * minute,
  quitMs: 5_000,
}
/** After a longer silence, the peer may have closed the connection without our knowing. */
const awakeMs = 1_000

/** Connects to one address and gets ready to send. Never rejects. A caller may retry a `tls` fault with `tls: 'none'`. */
export async function connect(
  options: ConnectOptions,
): Promise<{ connection: SmtpConnection } | ConnectFault> {
  const timeouts = { ...defaultTimeouts, ...options.timeouts }
  const verifying = options.tls === 'required' || options.tls === 'implicit'
  const wire = await Wire.open(
    {
      host: options.host,
      serverName: serverNameOf(options.requirement),
      address: options.address,
      port: options.port,
      localAddress: options.localAddress,
      tlsVerify: options.tlsVerify ?? (verifying ? 'host' : 'none'),
      tlsAuthorities: options.tlsAuthorities,
      connectMs: timeouts.connectMs,
      signal: options.signal,
    },
    options.tls === 'implicit' ? 'implicit' : 'plain',
  )
  if (!(wire instanceof Wire)) return { fault: wire.fault, reply: null }
  const opening = new Opening(wire, options, timeouts)
  const failed = await opening.run()
  if (!failed) return { connection: new SmtpConnection(wire, options, opening, timeouts) }
  const { localAddress } = wire
  wire.destroy('gave up')
  return { ...failed, localAddress }
}

/** EHLO keywords, in capitals, with their parameters. */
type Offer = ReadonlyMap<string, string>

/** The conversation before the first transaction: banner, EHLO or HELO, STARTTLS, AUTH. */
class Opening {
  offer: Offer = new Map()
  readonly steps: Step[] = []
  /** How the connection violates the requirement. */
  violation: Violation | null = null
  readonly #wire: Wire
  readonly #options: ConnectOptions
  readonly #timeouts: Timeouts

  constructor(wire: Wire, options: ConnectOptions, timeouts: Timeouts) {
    this.#wire = wire
    this.#options = options
    this.#timeouts = timeouts
    this.steps.push(...(options.earlier ?? []))
  }

  async run(): Promise<ConnectFault | null> {
    const banner = this.#note('connect', await this.#wire.read(this.#timeouts.bannerMs))
    return (
      notPositive(banner, 'the banner') ??
      (await this.#greet()) ??
      (await this.#secure()) ??
      this.#findLacking() ??
      (await this.#authenticate()) ??
      this.#unsettled()
    )
  }

  async #ask(line: string): Promise<Answer> {
    this.#wire.write([`${line}\r\n`], 1)
    return this.#wire.read(this.#timeouts.ehloMs)
  }

  #note(command: string, answer: Answer): Answer {
    if ('reply' in answer) this.steps.push({ command, atMs: performance.now(), reply: answer.reply })
    return answer
  }

  async #greet(): Promise<ConnectFault | null> {
    const ehlo = this.#note('EHLO', await this.#ask(`EHLO ${this.#options.ehloName}`))
    if ('reply' in ehlo && ehlo.reply.code >= 500) {
      this.offer = new Map()
      // RFC 5321 3.2: a server that does not know EHLO is greeted with HELO, and has no extensions.
      const helo = this.#note('HELO', await this.#ask(`HELO ${this.#options.ehloName}`))
      // A peer that refuses and then hangs up gave its reason in reply to EHLO.
      return 'reply' in helo ? notPositive(helo, 'HELO') : notPositive(ehlo, 'EHLO')
    }
    const failed = notPositive(ehlo, 'EHLO')
    if (!failed) this.offer = offerOf((ehlo as PeerReply).lines)
    return failed
  }

  async #secure(): Promise<ConnectFault | null> {
    const { tls, requirement = opportunistic } = this.#options
    const mayStart = tls === 'opportunistic' || tls === 'required'
    const refused = mayStart ? await this.#startTls() : 'plain'
    if (refused === 'plain' && tls === 'required')
      return { fault: fault('tls', 'the peer does not offer STARTTLS'), reply: null, violation: plaintext }
    if (refused !== null && refused !== 'plain')
      return isMandatory(requirement) ? named(refused, requirement) : refused
    this.violation = violationOf(requirement, this.#wire.peer)
    if (this.violation !== null && isMandatory(requirement))
      return { fault: fault('tls', this.violation.text), reply: null, violation: this.violation }
    // RFC 3207 4.2: the client forgets all it learned before TLS, and greets the peer again.
    return refused === 'plain' ? null : this.#greet()
  }

  #findLacking(): ConnectFault | null {
    const { demand } = this.#options
    // RFC 8689 4.2.1: the EHLO that counts is the one within TLS.
    if (!demand || (this.#wire.tlsProtocol !== null && this.offer.has(demand))) return null
    return {
      fault: fault('tls', `the server does not support ${demand}`),
      reply: null,
      lacking: demand,
    }
  }

  /** Returns null once TLS is on; `plain` if the peer does not offer TLS, or refuses STARTTLS. */
  async #startTls(): Promise<ConnectFault | 'plain' | null> {
    if (!this.offer.has('STARTTLS')) return 'plain'
    const answer = this.#note('STARTTLS', await this.#ask('STARTTLS'))
    if ('fault' in answer) return { fault: answer.fault, reply: null }
    if (answer.reply.code === 421) return notPositive(answer, 'STARTTLS')
    if (answer.reply.code >= 300) return 'plain'
    // Stops response injection: a man in the middle could add plaintext that would be read as a reply under TLS.
    const injected = this.#unsettled()
    if (injected) return injected
    const failed = await this.#wire.startTls(this.#timeouts.ehloMs)
    return failed && { fault: failed, reply: null }
  }

  async #authenticate(): Promise<ConnectFault | null> {
    const { auth, address } = this.#options
    if (!auth) return null
    // Keeps the password from eavesdroppers.
    if (this.#wire.tlsProtocol === null && !/^(?:127\.|::1$)/.test(address))
      return { fault: fault('tls', 'no password is sent without TLS'), reply: null }
    const mechanisms = (this.offer.get('AUTH') ?? '').toUpperCase().split(' ')
    const user = base64(auth.user)
    const password = base64(auth.password)
    // RFC 4616 2: authorization identity (none), authentication identity, password.
    if (mechanisms.includes('PLAIN'))
      return this.#converse([`AUTH PLAIN ${base64(`\0${auth.user}\0${auth.password}`)}`])
    if (mechanisms.includes('LOGIN')) return this.#converse(['AUTH LOGIN', user, password])
    return { fault: fault('protocol', 'the peer offers neither AUTH PLAIN nor AUTH LOGIN'), reply: null }
  }

  /** Sends the lines one by one: 334 asks for the next line, 235 follows the last. */
  async #converse(lines: readonly string[]): Promise<ConnectFault | null> {
    for (const [index, line] of lines.entries()) {
      const answer = await this.#ask(line)
      if (index === lines.length - 1) {
        // The reply may repeat the user name, and customers see the recorded steps.
        if ('reply' in answer) this.#note('AUTH', { ...answer, reply: wordless(answer.reply) })
        return notAuthenticated(answer)
      }
      if (!('reply' in answer) || answer.reply.code !== 334)
        return notAuthenticated(answer) ?? unasked('AUTH')
    }
    return null
  }

  #unsettled(): ConnectFault | null {
    if (this.#wire.isSettled) return null
    return { fault: this.#wire.fault ?? unasked('a command').fault, reply: this.#wire.unasked }
  }
}

/** The server of a connection, as events record it. */
interface Peer {
  host: string
  ip: string
  tls: string | null
  cipher: string | null
  /** The requirement that applied (`nameOf`), and how the connection violates it. Absent without a requirement. */
  policy?: string
  violation?: string
  /** Our address, if it is one of a pool. */
  source?: string
}

/** One connection, ready to send. It carries one transaction at a time. */
export class SmtpConnection {
  readonly remote: Peer
  /** How the connection violates the requirement; null if it does not. */
  readonly violation: Violation | null
  readonly localAddress: string | null
  readonly extensions: ReadonlySet<string>
  readonly #wire: Wire
  readonly #state: PeerState
  #spokeAtMs = performance.now()
  #isBusy = false

  constructor(wire: Wire, options: ConnectOptions, { offer, steps, violation }: Opening, timeouts: Timeouts) {
    const { host, address, requirement, demand } = options
    this.remote = { host, ip: address, tls: wire.tlsProtocol, cipher: wire.tlsCipher }
    if (requirement) this.remote.policy = nameOf(requirement)
    if (violation !== null) this.remote.violation = violation.text
    this.violation = violation
    this.localAddress = wire.localAddress
    this.extensions = new Set(offer.keys())
    this.#wire = wire
    this.#state = {
      opening: steps,
      extensions: this.extensions,
      maxSizeBytes: sizeLimit(offer.get('SIZE') ?? ''),
      timeouts,
      requiresTls: demand === 'REQUIRETLS',
      needsReset: false,
      isNew: true,
      isAwake: true,
      farewell: null,
    }
  }

  /** True if the connection is open and no transaction is running. */
  get isUsable(): boolean {
    return !this.#isBusy && this.#wire.isSettled
  }

  /**
   * Sends the message to each envelope, one transaction after the other. `message` is the final bytes, its lines ended by
   * CRLF. Never rejects. If every recipient is `untried` on a connection used before, the peer has most likely timed it
   * out: try a new connection.
   */
  async send(
    envelopes: readonly RecipientEnvelope[],
    message: Buffer,
    options: SendOptions = {},
  ): Promise<SendResult> {
    if (!this.isUsable) return this.#unsent(envelopes, options)
    this.#isBusy = true
    this.#state.isAwake = performance.now() - this.#spokeAtMs < awakeMs
    const result = await transact(this.#wire, this.#state, envelopes, new OutgoingMessage(message), options)
    this.#spokeAtMs = performance.now()
    this.#isBusy = false
    return result
  }

  /** Sends QUIT if the connection is usable, waits a few seconds for the reply, and closes. */
  async quit(): Promise<void> {
    if (this.isUsable) {
      this.#isBusy = true
      this.#wire.write(['QUIT\r\n'], 1)
      await this.#wire.read(this.#state.timeouts.quitMs)
    }
    this.destroy()
  }

  /** Closes at once. A running transaction ends with a fault. */
  destroy(): void {
    this.#wire.destroy('closed by us')
  }

  #unsent(envelopes: readonly RecipientEnvelope[], { onResult }: SendOptions): SendResult {
    const failed = this.#wire.fault ?? fault('closed', 'the connection is in use')
    const recipients = envelopes.map(() => ({ outcome: 'untried' as const }))
    for (const [index, result] of recipients.entries()) onResult?.(index, result, [])
    return { recipients, fault: failed, reply: this.#wire.unasked }
  }
}

/** Returns null for a 2xx; otherwise the fault, with the reply that caused it. */
function notPositive(answer: Answer, step: string): ConnectFault | null {
  if ('fault' in answer) return { fault: answer.fault, reply: null }
  const { code } = answer.reply
  if (code < 300) return null
  const kind = code < 400 ? 'protocol' : 'refused'
  return { fault: fault(kind, `${step} was answered by ${replyLine(answer.reply)}`), reply: answer.reply }
}

/** The fault of a handshake, with the rule that made it matter. Other faults stay as they are. */
function named({ fault: { kind, message }, reply }: ConnectFault, requirement: TlsRequirement): ConnectFault {
  return { fault: fault(kind, kind === 'tls' ? `${nameOf(requirement)}: ${message}` : message), reply }
}

/** `notPositive` for AUTH, without the peer's text: it may repeat the user name, and customers see faults. */
function notAuthenticated(answer: Answer): ConnectFault | null {
  const failed = notPositive(answer, 'AUTH')
  if (!failed?.reply) return failed
  const { code, enhanced } = failed.reply
  const status = enhanced === null ? code : `${code} ${enhanced}`
  return { ...failed, fault: fault(failed.fault.kind, `AUTH was answered by ${status}`) }
}

function unasked(step: string): ConnectFault {
  return { fault: fault('protocol', `more came in reply to ${step} than was asked for`), reply: null }
}

function offerOf(lines: readonly string[]): Offer {
  const offer = new Map<string, string>()
  for (const line of lines.slice(1)) {
    // QUIRK: servers older than RFC 2554 write `AUTH=LOGIN PLAIN`, in place of the form with a space or in addition to it.
    const match = /^([A-Za-z0-9][A-Za-z0-9-]*)(?:[ =](.*))?$/.exec(line.trimEnd())
    if (!match) continue
    const keyword = match[1]!.toUpperCase()
    offer.set(keyword, offer.has(keyword) ? `${offer.get(keyword)} ${match[2] ?? ''}` : (match[2] ?? ''))
  }
  return offer
}

/** Maximum message size in bytes, from the parameter of SIZE; 0 for no limit. */
function sizeLimit(parameter: string): number {
  // RFC 1870 3: 0, or no number at all, means that there is no fixed limit.
  return /^\d{1,15}$/.test(parameter) ? Number(parameter) : 0
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
