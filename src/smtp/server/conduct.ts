// Decides what the peer of one session may still do, by its errors, its messages and its block list entries.
// Trusted peers and our own nodes are exempt from most of this.
import { meters } from '../../base/meters.ts'
import { type Reply, reply } from '../reply.ts'
import type { Envelope, Listing, Path } from './backend.ts'
import type { Misdeed, Peers } from './peers.ts'
import type { ServerLimits, SmtpServerOptions } from './server-options.ts'

const tooManyErrors = reply(421, '4.7.0', 'Too many errors')
const tooManyMessages = reply(421, '4.7.0', 'Too many messages in one session, reconnect')
const unlisted: Listing = { listedBy: [], refusedBy: null }

export class Conduct {
  readonly #options: SmtpServerOptions
  readonly #limits: ServerLimits
  readonly #peers: Peers
  #address: string
  #isTrusted: boolean
  /** True for our own node: it sends to the recipients that its senders name, and guesses no addresses. */
  #isOwn = false
  #hasLoggedIn = false
  #errors = 0
  #messages = 0
  #isListedCounted = false
  /** Null if no block list is queried. */
  #listing: Promise<Listing> | null

  constructor(
    options: SmtpServerOptions,
    { limits, peers }: { limits: ServerLimits; peers: Peers },
    address: string,
  ) {
    this.#options = options
    this.#limits = limits
    this.#peers = peers
    this.#address = address
    this.#isTrusted = options.isTrusted(address)
    this.#listing = this.#askLists()
  }

  /** Sets the address that a trusted proxy named. */
  replaceAddress(address: string): void {
    this.#address = address
    this.#isTrusted = this.#options.isTrusted(address)
    this.#listing = this.#askLists()
  }

  /** Returns whether this EHLO name is that of one of our nodes. */
  recognize(name: string): boolean {
    this.#isOwn = this.#options.isOwn?.(name) ?? false
    return this.#isOwn
  }

  get isOwn(): boolean {
    return this.#isOwn
  }

  /** The client has authenticated: its key has limits of its own. */
  noteLogin(): void {
    this.#hasLoggedIn = true
  }

  /** Forgets what the peer said before the TLS handshake. */
  startOver(): void {
    this.#isOwn = false
  }

  /** How many messages this session may begin; null if there is no limit. */
  get maxMessages(): number | null {
    return this.#isCounted ? this.#limits.maxMessages : null
  }

  /** Counts the start of a message, accepted or not. Null allows it; otherwise the reply to close with. */
  async beginMessage(): Promise<Reply | null> {
    if (!this.#isCounted) return null
    // RFC 9422 4.1: MAILMAX counts MAIL commands, whether they succeed or not.
    if (++this.#messages > this.#limits.maxMessages) {
      meters.peersRefused.inc({ reason: 'session_messages' })
      return tooManyMessages
    }
    return await this.#peers.beginMessage(this.#address)
  }

  /** The peer's block list entries. None for exempt peers. */
  async listing(): Promise<Listing> {
    if (!this.#isCounted || this.#listing === null) return unlisted
    return await this.#listing
  }

  /** Returns the refusal of a recipient because of a block list; null if the recipient is allowed. */
  refuseListed({ refusedBy }: Listing, { from }: Envelope, to: Path): Reply | null {
    // RFC 5321 4.5.1: postmaster must be reachable. RFC 2142 4: so must abuse, for listed senders who do not know why.
    if (refusedBy === null || /^(?:postmaster|abuse)$/i.test(to.localPart)) return null
    this.#noteListed(refusedBy, from)
    return reply(
      550,
      '5.7.1',
      `Service unavailable, client host [${this.#address}] blocked using ${refusedBy}`,
    )
  }

  /** Logs and counts once per session, however many recipients there are. */
  #noteListed(list: string, from: Path): void {
    if (this.#isListedCounted) return
    this.#isListedCounted = true
    meters.peersRefused.inc({ reason: 'listed' })
    const fields = { peer: this.#address, from: from.address, list }
    this.#options.log.info(fields, 'mail refused: the peer is on a block list')
  }

  /** Returns the reply that ends a blocked peer's connection, or null. Blocked peers do not learn which recipients exist. */
  async refusal(): Promise<Reply | null> {
    return this.#isCounted ? await this.#peers.refusal(this.#address) : null
  }

  /** Counts a permanently refused command. Resolves when the refusal may be sent: to null, or to a reply to close with. */
  async answerRefused({ enhanced }: Reply): Promise<Reply | null> {
    if (!this.#isOwn && !this.#hasLoggedIn && ++this.#errors > this.#limits.maxErrors) {
      meters.peersRefused.inc({ reason: 'session_errors' })
      return tooManyErrors
    }
    if (!this.#isCounted) return null
    return await this.#peers.answer(this.#address, misdeedOf(enhanced))
  }

  /** Counts a refusal that is sent without delay: the reply to a message, or the last reply of the connection. */
  noteReply({ code, enhanced }: Reply): void {
    if (code >= 500 && this.#isCounted) this.#peers.note(this.#address, misdeedOf(enhanced))
  }

  noteTaken(): void {
    if (this.#isCounted) this.#peers.noteTaken(this.#address)
  }

  get #isCounted(): boolean {
    return !this.#isOwn && !this.#isTrusted && !this.#hasLoggedIn
  }

  #askLists(): Promise<Listing> | null {
    const { listingOf, log } = this.#options
    if (this.#isTrusted || !listingOf) return null
    return listingOf(this.#address).catch((error: unknown) => {
      // A bug of ours must not keep mail out.
      log.error({ err: error, peer: this.#address }, 'block lists could not be queried')
      return unlisted
    })
  }
}

function misdeedOf(enhanced: string | null): Misdeed {
  return enhanced === '5.1.1' ? 'unknown' : 'errors'
}
