// The client's login at a submission server: AUTH PLAIN and LOGIN, with any user name. Without a gate, the server has none.
import { type Reply, reply } from '../reply.ts'
import type { Backend, Gate, ReversePath } from './backend.ts'
import { maxAuthLineBytes } from './command.ts'

const noAuth = reply(502, '5.5.1', 'Authentication not supported, use the HTTP API to send mail')
const again = reply(503, '5.5.1', 'Already authenticated')
const unknownMechanism = reply(504, '5.5.4', 'Authentication mechanism not supported, use PLAIN or LOGIN')
const malformed = reply(501, '5.5.2', 'Malformed authentication response')
const cancelled = reply(501, '5.7.0', 'Authentication cancelled')
const tooLong = reply(500, '5.5.6', 'Authentication exchange line is too long')
const succeeded = reply(235, '2.7.0', 'Authentication successful')
const first = reply(530, '5.7.0', 'Authentication required')
const noBinary = reply(501, '5.5.4', 'BODY=BINARYMIME is not supported')
const unannounced = reply(555, '5.5.4', 'Parameter not recognized')

/** The content of the client's next response. */
type Awaited = 'plain' | 'user' | 'password'

/** RFC 4954 4: each challenge is in Base64. LOGIN has no RFC; clients expect these two prompts. */
const challenges: Record<Awaited, Reply> = {
  plain: reply(334, null, ''),
  user: reply(334, null, 'VXNlcm5hbWU6'),
  password: reply(334, null, 'UGFzc3dvcmQ6'),
}

export class Login {
  readonly #gate: Gate | null
  #backend: Backend | null
  #awaited: Awaited | null = null

  constructor(backend: Backend | Gate) {
    this.#gate = 'admit' in backend ? backend : null
    this.#backend = 'admit' in backend ? null : backend
  }

  /** Whether clients must log in. */
  get isServed(): boolean {
    return this.#gate !== null
  }

  get isChallenging(): boolean {
    return this.#awaited !== null
  }

  /** The backend for the client's mail; null until it has logged in. */
  get backend(): Backend | null {
    return this.#backend
  }

  /** Forgets the login, as TLS has begun since. */
  startOver(): void {
    this.#awaited = null
    if (this.#gate) this.#backend = null
  }

  /** Returns the refusal of a MAIL command that this server cannot take from this client. */
  refuseMail({ body, namesLogin }: ReversePath): Reply | null {
    // RFC 4954 5: a server without AUTH does not know the parameter AUTH.
    if (!this.#gate) return namesLogin ? unannounced : null
    // RFC 4954 6: 530 until the client has authenticated.
    if (!this.#backend) return first
    // RFC 3030 3: it was not announced, for such a message cannot be passed on unchanged.
    return body === 'BINARYMIME' ? noBinary : null
  }

  begin(mechanism: string, initial: string | null, address: string): Reply | Promise<Reply> {
    if (!this.#gate) return noAuth
    if (this.#backend) return again
    if (mechanism !== 'PLAIN' && mechanism !== 'LOGIN') return unknownMechanism
    const awaited = mechanism === 'PLAIN' ? 'plain' : 'user'
    if (initial !== null) return this.#take(awaited, initial, address)
    this.#awaited = awaited
    return challenges[awaited]
  }

  /** Takes the response to a challenge: a line without its line feed. */
  respond(line: Buffer, address: string): Reply | Promise<Reply> {
    const awaited = this.#awaited!
    this.#awaited = null
    if (line.length + 1 > maxAuthLineBytes) return tooLong
    const text = line.toString('latin1')
    if (!text.endsWith('\r')) return malformed
    // RFC 4954 4: a client cancels with a single asterisk.
    return text === '*\r' ? cancelled : this.#take(awaited, text.slice(0, -1), address)
  }

  #take(awaited: Awaited, response: string, address: string): Reply | Promise<Reply> {
    // RFC 4954 4: a single equals sign is an empty initial response.
    const given = response === '=' ? '' : response
    if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(given)) return malformed
    const text = Buffer.from(given, 'base64').toString()
    if (awaited === 'user') {
      this.#awaited = 'password'
      return challenges.password
    }
    if (awaited === 'password') return this.#enter(text, address)
    // RFC 4616 2: authorization identity, NUL, user name, NUL, password. The key alone names the caller.
    const parts = text.split('\0')
    return parts.length === 3 ? this.#enter(parts[2]!, address) : malformed
  }

  async #enter(secret: string, address: string): Promise<Reply> {
    const admitted = await this.#gate!.admit(secret, address)
    if ('code' in admitted) return admitted
    this.#backend = admitted
    return succeeded
  }
}
