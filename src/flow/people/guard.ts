// The guard: attempts to sign in, and mails to an address, are counted, and many of them have to wait longer and longer.
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
/** Of one address, known or not: five for free, then 1 s, 2 s, 4 s … 15 min. */
const ofAccount: AttemptBound = { free: 5, firstWaitSeconds: 1, longestWaitSeconds: quarterHour }
/** Of one network, at any addresses. */
const ofNetwork: AttemptBound = { free: 20, firstWaitSeconds: 1, longestWaitSeconds: quarterHour }
/** Of all networks of one that is larger: of IPv6 anyone is given 65,536. */
const ofWideNetwork: AttemptBound = { ...ofNetwork, free: 200 }
/**
 * Letters of one kind to one address: three, then one after 5 min, 10 min … an hour. Security: as long as a link for a new
 * password is good, so that whoever asks for letters in somebody's name leaves them with one that works.
 */
const ofLetters: AttemptBound = { free: 3, firstWaitSeconds: 300, longestWaitSeconds: 3_600 }

/**
 * Counts under keyed digests, so that the table names neither addresses nor networks. What is counted is counted before it is
 * tried: attempts at the same time do not pass together.
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
   * Counts an attempt at the account from the network; refuses with `too_many_attempts` if either has to wait. Security:
   * attempts from a network that the account has signed in from are counted apart, so that nobody locks its owner out from
   * elsewhere.
   */
  async admit(email: string, ip: string): Promise<void> {
    // The network first: one that has to wait cannot keep an account waiting as well.
    if (await isNetworkKnown(this.#db, this.#home(email, ip), this.#clock.now())) {
      await this.#require(this.#subject('network', networkOf(ip)), ofNetwork)
      await this.#require(this.#accountAtHome(email, ip), ofAccount)
    } else {
      await this.admitNetwork(ip)
      await this.#require(this.#subject('account', email), ofAccount)
    }
  }

  /** Counts an attempt of which it is not known whose it is. */
  async admitNetwork(ip: string): Promise<void> {
    await this.#requireNetworks('network', ip)
  }

  /** The attempt was the right one: the account's are forgotten, and it does not count against the network. */
  async passed(email: string, ip: string): Promise<void> {
    await clearAttempts(this.#db.writer, this.#subject('account', email))
    await clearAttempts(this.#db.writer, this.#accountAtHome(email, ip))
    await this.passedFrom(ip)
  }

  /** The account has signed in from the network, which is known for it from now on. */
  async remember(email: string, ip: string): Promise<void> {
    await rememberNetwork(this.#db.writer, this.#home(email, ip), this.#clock.now())
  }

  /** An attempt from the network was right, and does not count against it. */
  async passedFrom(ip: string): Promise<void> {
    for (const network of [networkOf(ip), wideNetworkOf(ip)])
      await takeBackAttempt(this.#db.writer, this.#subject('network', network))
  }

  /** Counts what anyone can ask for without being signed in, such as a sign-up; refuses a network that asks for too much. */
  async admitVisitor(ip: string): Promise<void> {
    await this.#requireNetworks('visitor', ip)
  }

  /** Whether one more letter of the kind may go to the address; nobody can have us flood it. */
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
