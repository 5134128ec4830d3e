// How the peer of one session behaves: what that lets it do further, and what block lists say of it. Peers who are trusted
// and nodes of ours are free of most of it.
import { meters } from '../../base/meters.ts'
import { type Reply, reply } from '../reply.ts'
import type { Envelope, Listing, Path } from './backend.ts'
import type { Misdeed, Reputation } from './reputation.ts'
import type { ServerLimits, SmtpServerOptions } from './server-options.ts'

const tooManyErrors = reply(421, '4.7.0', 'Too many errors')
const tooManyMessages = reply(421, '4.7.0', 'Too many messages in one session, connect again')
const unlisted: Listing = { listedBy: [], refusedBy: null }

export class Conduct {
  readonly #options: SmtpServerOptions
  readonly #limits: ServerLimits
  readonly #reputation: Reputation
  #address: string
  #isTrusted: boolean
  /** A node of ours: it writes to whom its senders name, and guesses nothing. */
  #isOwn = false
  #errors = 0
  #messages = 0
  #isListedCounted = false
  /** Null where no list is asked. */
  #listing: Promise<Listing> | null

  constructor(
    options: SmtpServerOptions,
    { limits, reputation }: { limits: ServerLimits; reputation: Reputation },
    address: string,
  ) {
    this.#options = options
    this.#limits = limits
    this.#reputation = reputation
    this.#address = address
    this.#isTrusted = options.isTrusted(address)
    this.#listing = this.#askLists()
  }

  /** The peer that a trusted proxy named. */
  replaceAddress(address: string): void {
    this.#address = address
    this.#isTrusted = this.#options.isTrusted(address)
    this.#listing = this.#askLists()
  }

  /** Whether this EHLO name is that of a node of ours. */
  recognize(name: string): boolean {
    this.#isOwn = this.#options.isOwn?.(name) ?? false
    return this.#isOwn
  }

  get isOwn(): boolean {
    return this.#isOwn
  }

  /** What it said before the TLS handshake is forgotten. */
  startOver(): void {
    this.#isOwn = false
  }

  /** How many messages this session may begin; null where nothing bounds them. */
  get maxMessages(): number | null {
    return this.#isCounted ? this.#limits.maxMessages : null
  }

  /** A message begins, accepted or not: null lets it, otherwise the reply to close with. */
  beginMessage(): Reply | null {
    if (!this.#isCounted) return null
    // RFC 9422 4.1: MAILMAX counts MAIL commands, whether they succeed or not.
    if (++this.#messages > this.#limits.maxMessages) {
      meters.peersRefused.inc({ reason: 'session_messages' })
      return tooManyMessages
    }
    return this.#reputation.beginMessage(this.#address)
  }

  /** What lists say of the peer; nothing of those who are not to be counted. */
  async listing(): Promise<Listing> {
    if (!this.#isCounted || this.#listing === null) return unlisted
    return await this.#listing
  }

  /** The refusal of a recipient by what lists say; null where it may be. */
  refuseListed({ refusedBy }: Listing, { from }: Envelope, to: Path): Reply | null {
    // RFC 5321 4.5.1: postmaster is to be reached. RFC 2142 4: so is abuse, by who is listed and does not know why.
    if (refusedBy === null || /^(?:postmaster|abuse)$/i.test(to.localPart)) return null
    this.#noteListed(refusedBy, from)
    return reply(550, '5.7.1', `Mail from ${this.#address} is not taken: it is listed by ${refusedBy}`)
  }

  /** Once a session, however many recipients it names. */
  #noteListed(list: string, from: Path): void {
    if (this.#isListedCounted) return
    this.#isListedCounted = true
    meters.peersRefused.inc({ reason: 'listed' })
    const fields = { peer: this.#address, from: from.address, list }
    this.#options.log.info(fields, 'mail was refused: a block list has the peer')
  }

  /** Peers who are turned away learn nothing of known recipients either: the reply that ends the connection, or null. */
  refusal(): Reply | null {
    return this.#isCounted ? this.#reputation.refusal(this.#address) : null
  }

  /** A command was refused for good: resolves once that may be said, with the reply to close with instead, or null. */
  async answerRefused({ enhanced }: Reply): Promise<Reply | null> {
    if (!this.#isOwn && ++this.#errors > this.#limits.maxErrors) {
      meters.peersRefused.inc({ reason: 'session_errors' })
      return tooManyErrors
    }
    if (!this.#isCounted) return null
    return await this.#reputation.answer(this.#address, misdeedOf(enhanced))
  }

  /** This is said whatever it counts: the reply to a message, or the last of the connection. */
  noteSaid({ code, enhanced }: Reply): void {
    if (code >= 500 && this.#isCounted) this.#reputation.note(this.#address, misdeedOf(enhanced))
  }

  noteTaken(): void {
    if (this.#isCounted) this.#reputation.noteTaken(this.#address)
  }

  get #isCounted(): boolean {
    return !this.#isOwn && !this.#isTrusted
  }

  #askLists(): Promise<Listing> | null {
    const { listingOf, log } = this.#options
    if (this.#isTrusted || !listingOf) return null
    return listingOf(this.#address).catch((error: unknown) => {
      // A bug of ours keeps no mail out.
      log.error({ err: error, peer: this.#address }, 'block lists could not be asked')
      return unlisted
    })
  }
}

function misdeedOf(enhanced: string | null): Misdeed {
  return enhanced === '5.1.1' ? 'unknown' : 'errors'
}
