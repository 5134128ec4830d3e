// Passwords: hashed by argon2id on the thread pool, a few at a time. A comparison takes at least as long as a hash.
import { type Argon2Parameters, argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { ServiceError } from '../../base/errors.ts'
import { FairLimit } from '../../base/fair-limit.ts'
import { divided, mayTake } from '../../base/share.ts'

/** The cost of hashing one password; `memory` in KiB. */
type Cost = Readonly<Pick<Argon2Parameters, 'memory' | 'passes' | 'parallelism'>>

// RFC 9106 4: the second recommended choice. Measured: 0.27 s on one core.
const recommendedCost: Cost = { memory: 65_536, passes: 3, parallelism: 4 }
const saltBytes = 16
const tagBytes = 32
/** Two of the four threads in libuv's pool. Files and host look-ups wait for this pool too. */
const maxAtOnce = 2
/** With more, the last in the queue would wait too long: more than about 14 s. */
const maxWaiting = 100
/** Security: one network may take half as many of these as then stay free, which is a third if it is alone. */
const shareRatio = 0.5
/** Security: limits for stored strings, so that no row can make a sign-in take all memory or time. */
const maxCost = { memory: 1 << 20, passes: 32, parallelism: 64 }

const derive = promisify(argon2)
const phc =
  /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/

interface Parsed extends Cost {
  salt: Buffer
  tag: Buffer
}

/** Hashes and compares passwords, fairly between networks. */
export class Passwords {
  readonly #cost: Cost
  /** Compared with if there is no password, so that this takes as long as with one. */
  readonly #nobodys: Parsed
  readonly #limit: FairLimit
  readonly #maxWaiting: number
  readonly #waitingOf = new Map<string, number>()
  #waiting = 0
  readonly #linksInUse = new Set<string>()

  /** `workers`: the processes that divide the limits. `cost` is for tests, which hash hundreds. */
  constructor(cost = recommendedCost, workers = 1) {
    this.#limit = new FairLimit(divided(maxAtOnce, workers))
    this.#maxWaiting = divided(maxWaiting, workers)
    this.#cost = cost
    this.#nobodys = { ...cost, salt: Buffer.alloc(saltBytes), tag: Buffer.alloc(tagBytes) }
  }

  /** The PHC string of the password under a new salt. `asker` is the network of the request. */
  async hash(asker: string, password: string): Promise<string> {
    const salt = randomBytes(saltBytes)
    const tag = await this.#derive(asker, password, { ...this.#cost, salt, tagLength: tagBytes })
    return formatPhc({ ...this.#cost, salt, tag })
  }

  /**
   * Hashes for the holder of a link, identified by the digest of its secret. Throws `too_many_attempts` while another hash
   * for the link runs. Security: a link is used up only after the hash, so one link must not fill the queue.
   */
  async hashOnce(link: Buffer, asker: string, password: string): Promise<string> {
    const key = link.toString('latin1')
    if (this.#linksInUse.has(key))
      throw new ServiceError(
        'too_many_attempts',
        'This link is being used right now. Try again in a moment.',
        1,
      )
    this.#linksInUse.add(key)
    try {
      return await this.hash(asker, password)
    } finally {
      this.#linksInUse.delete(key)
    }
  }

  /** Whether the password matches the PHC string. Null never matches, and takes as long. */
  async isRight(asker: string, password: string, stored: string | null): Promise<boolean> {
    const { salt, tag, ...spent } = (stored === null ? null : parsePhc(stored)) ?? this.#nobodys
    const derived = await this.#derive(asker, password, { ...spent, salt, tagLength: tag.length })
    return timingSafeEqual(derived, tag) && stored !== null
  }

  async #derive(
    asker: string,
    password: string,
    { salt, ...spent }: Omit<Argon2Parameters, 'message' | 'nonce'> & { salt: Buffer },
  ): Promise<Buffer> {
    const own = this.#waitingOf.get(asker) ?? 0
    if (!mayTake(own, this.#waiting, this.#maxWaiting, shareRatio)) throw new ServiceError('unavailable')
    this.#count(asker, 1)
    try {
      // NIST SP 800-63B 5.1.1.2: one normal form, whatever the keyboard.
      const message = password.normalize('NFKC')
      return await this.#limit.run(asker, () => derive('argon2id', { message, nonce: salt, ...spent }))
    } finally {
      this.#count(asker, -1)
    }
  }

  #count(asker: string, change: 1 | -1): void {
    const own = (this.#waitingOf.get(asker) ?? 0) + change
    if (own > 0) this.#waitingOf.set(asker, own)
    else this.#waitingOf.delete(asker)
    this.#waiting += change
  }
}

function formatPhc({ memory, passes, parallelism, salt, tag }: Parsed): string {
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(salt)}$${unpadded(tag)}`
}

/** Null if the text does not have the form of `formatPhc`, or a cost is not within 1 and `maxCost`. */
export function parsePhc(text: string): Parsed | null {
  const [, memory, passes, parallelism, salt, tag] = phc.exec(text) ?? []
  if (!salt || !tag) return null
  const spent = { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) }
  const isBounded = Object.entries(maxCost).every(([name, max]) => {
    const value = spent[name as keyof typeof spent]
    return value >= 1 && value <= max
  })
  return isBounded ? { ...spent, salt: Buffer.from(salt, 'base64'), tag: Buffer.from(tag, 'base64') } : null
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '')
}
