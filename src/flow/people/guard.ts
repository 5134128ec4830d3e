// Counts sign-in attempts and mails to an address. Too many of them must wait, each time longer.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { networkOf, wideNetworkOf } from '../../base/ip-address.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import type { Db, Writer } from '../../postgres/db.ts'
import { isNetworkKnown, rememberNetwork } from '../../store/people/known-networks.ts'
import {
  type AttemptBound,
  clearAttempts,
  countAttempt,
  findBlock,
  takeBackAttempt,
} from '../../store/people/sign-in-failures.ts'

const quarterHour = 900
/** For one address, known or not: five attempts without a wait, then 1 s, 2 s, 4 s … 15 min. */
const ofAccount: AttemptBound = { free: 5, firstWaitSeconds: 1, longestWaitSeconds: quarterHour }
/** For one network, whatever the addresses. */
const ofNetwork: AttemptBound = { free: 20, firstWaitSeconds: 1, longestWaitSeconds: quarterHour }
/** For a wide network as a whole: with IPv6 anyone can get 65,536 networks. */
const ofWideNetwork: AttemptBound = { ...ofNetwork, free: 200 }
/**
 * For letters of one kind to one address: three, then one after 5 min, 10 min … an hour. Security: the longest wait equals
 * the lifetime of a reset link. Even if a stranger requests letters in their name, a person has a link that works.
 */
const ofLetters: AttemptBound = { free: 3, firstWaitSeconds: 300, longestWaitSeconds: 3_600 }

/**
 * Counts under keyed digests, so the table reveals neither addresses nor networks. Counts each attempt before it is tried,
 * so parallel attempts cannot pass together.
 */
export class Guard {
  readonly #db: Db
  readonly #clock: Clock
  readonly #secretBox: SecretBox

  constructor({ db, clock, secretBox }: { db: Db; clock: Clock; secretBox: SecretBox }) {
    this.#db = db
    this.#clock = clock
    this.#secretBox = secretBox
  }

  /**
   * Counts an attempt at the account from the network. Throws `too_many_attempts` if either must wait. Security: attempts
   * from a network where the account has signed in before are counted apart. So a stranger elsewhere cannot lock the owner
   * out.
   */
  async admit(email: string, ip: string): Promise<void> {
    // The network first, so that a network that must wait cannot make the account wait too.
    if (await isNetworkKnown(this.#db, this.#home(email, ip), this.#clock.now())) {
      await this.#require(this.#subject('network', networkOf(ip)), ofNetwork)
      await this.#require(this.#accountAtHome(email, ip), ofAccount)
    } else {
      await this.admitNetwork(ip)
      await this.#require(this.#subject('account', email), ofAccount)
    }
  }

  /** Counts an attempt whose account is unknown. */
  async admitNetwork(ip: string): Promise<void> {
    await this.#requireNetworks('network', ip)
  }

  /** The attempt succeeded: clears the account's attempts, and does not count against the network. */
  async passed(email: string, ip: string): Promise<void> {
    await clearAttempts(this.#db.writer, this.#subject('account', email))
    await clearAttempts(this.#db.writer, this.#accountAtHome(email, ip))
    await this.passedFrom(ip)
  }

  /** Records that the account has signed in from the network. */
  async remember(email: string, ip: string): Promise<void> {
    await rememberNetwork(this.#db.writer, this.#home(email, ip), this.#clock.now())
  }

  /** Takes back an attempt from the network, as it succeeded. */
  async passedFrom(ip: string): Promise<void> {
    for (const network of [networkOf(ip), wideNetworkOf(ip)])
      await takeBackAttempt(this.#db.writer, this.#subject('network', network))
  }

  /** Counts a request that needs no sign-in, such as a sign-up. Refuses a network with too many requests. */
  async admitVisitor(ip: string): Promise<void> {
    await this.#requireNetworks('visitor', ip)
  }

  /** Counts a letter and returns whether it may go to the address. Limits how much mail strangers can make us send there. */
  async mayWrite(
    kind: 'confirm' | 'reset' | 'invite',
    email: string,
    writer: Writer = this.#db.writer,
  ): Promise<boolean> {
    const subject = this.#subject(`letter to ${kind}`, email)
    return await countAttempt(writer, subject, ofLetters, this.#clock.now())
  }

  async #requireNetworks(kind: 'network' | 'visitor', ip: string): Promise<void> {
    await this.#require(this.#subject(kind, networkOf(ip)), ofNetwork)
    await this.#require(this.#subject(kind, wideNetworkOf(ip)), ofWideNetwork)
  }

  async #require(subject: Buffer, bound: AttemptBound): Promise<void> {
    const at = this.#clock.now()
    if (await countAttempt(this.#db.writer, subject, bound, at)) return
    const until = await findBlock(this.#db, subject)
    const waitMs = (until?.getTime() ?? 0) - at.getTime()
    throw new ServiceError('too_many_attempts', undefined, Math.max(1, Math.ceil(waitMs / 1000)))
  }

  #home(email: string, ip: string): Buffer {
    return this.#subject('home', `${email}\n${networkOf(ip)}`)
  }

  #accountAtHome(email: string, ip: string): Buffer {
    return this.#subject('account at home', `${email}\n${networkOf(ip)}`)
  }

  #subject(kind: string, text: string): Buffer {
    return this.#secretBox.digest('sign-in guard', `${kind}\n${text}`)
  }
}
