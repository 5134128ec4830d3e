// The guard: attempts to sign in, and mails to an address, are counted, and many of them have to wait longer and longer.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import type { Db } from '../../postgres/db.ts'
import {
  type AttemptBound,
  clearAttempts,
  countAttempt,
  findBlock,
  takeBackAttempt,
} from '../../store/sign-in-failures.ts'
import { networkOf } from './network.ts'

const quarterHour = 900
/** Of one address, known or not: five for free, then 1 s, 2 s, 4 s … 15 min. */
const ofAccount: AttemptBound = { free: 5, firstWaitSeconds: 1, longestWaitSeconds: quarterHour }
/** Of one network, at any addresses. */
const ofNetwork: AttemptBound = { free: 20, firstWaitSeconds: 1, longestWaitSeconds: quarterHour }
/** Mails to one address that nobody who is signed in asked for: three, then one after 5 min, 10 min … a day. */
const ofMails: AttemptBound = { free: 3, firstWaitSeconds: 300, longestWaitSeconds: 86_400 }

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

  /** Counts an attempt at the account from the network; refuses with `too_many_attempts` where either has to wait. */
  async admit(email: string, ip: string): Promise<void> {
    // The network first: one that has to wait cannot keep an account waiting as well.
    await this.admitNetwork(ip)
    await this.#require(this.#subject('account', email), ofAccount)
  }

  /** Counts an attempt of which it is not known whose it is. */
  async admitNetwork(ip: string): Promise<void> {
    await this.#require(this.#subject('network', networkOf(ip)), ofNetwork)
  }

  /** The attempt was the right one: the account's are forgotten, and it does not count against the network. */
  async passed(email: string, ip: string): Promise<void> {
    await this.forgive(email)
    await this.passedFrom(ip)
  }

  /** An attempt from the network was right, and does not count against it. */
  async passedFrom(ip: string): Promise<void> {
    await takeBackAttempt(this.#db.writer, this.#subject('network', networkOf(ip)), this.#clock.now())
  }

  /** Forgets the attempts at an account whose owner has proved to be it in another way. */
  async forgive(email: string): Promise<void> {
    await clearAttempts(this.#db.writer, this.#subject('account', email))
  }

  /** Counts what anyone can ask for without being signed in, such as a sign-up; refuses a network that asks for too much. */
  async admitVisitor(ip: string): Promise<void> {
    await this.#require(this.#subject('visitor', networkOf(ip)), ofNetwork)
  }

  /** Whether one more mail may go to the address; nobody can have us flood it. */
  async mayWriteTo(email: string): Promise<boolean> {
    return await countAttempt(this.#db.writer, this.#subject('mail', email), ofMails, this.#clock.now())
  }

  async #require(subject: Buffer, bound: AttemptBound): Promise<void> {
    const at = this.#clock.now()
    if (await countAttempt(this.#db.writer, subject, bound, at)) return
    const until = await findBlock(this.#db, subject)
    const waitMs = (until?.getTime() ?? 0) - at.getTime()
    throw new ServiceError('too_many_attempts', undefined, Math.max(1, Math.ceil(waitMs / 1000)))
  }

  #subject(kind: string, text: string): Buffer {
    return this.#secretBox.digest('sign-in guard', `${kind}\n${text}`)
  }
}
