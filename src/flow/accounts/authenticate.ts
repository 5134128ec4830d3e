// Authenticates callers: key digests, cached for a second, and the requests that a key may still make in its minute.
import { BoundedMap } from '../../base/bounded-map.ts'
import type { Clock } from '../../base/clock.ts'
import { KnownFor } from '../../base/known-for.ts'
import type { Db } from '../../postgres/db.ts'
import { borrowRequests, findCallers } from '../../store/accounts/keys.ts'
import type { Caller } from '../caller.ts'
import { knownForMs } from '../known-everywhere.ts'
import { hashSecret, isSecret } from './key.ts'

const maxKeys = 10_000
/** Longer than any key. Longer texts are refused without hashing. */
const maxSecret = 100

/** Caches the callers of the last second. */
export class KeyRing {
  readonly #clock: Clock
  /** Keyed by digest: the time of a map look-up reveals nothing of the secret, and no secret is kept. */
  readonly #callers: KnownFor<string, Caller>

  constructor({ db, clock }: { db: Db; clock: Clock }) {
    this.#clock = clock
    this.#callers = new KnownFor({
      name: 'find callers',
      clock,
      ms: knownForMs,
      max: maxKeys,
      load: async (digests) => {
        const hashes = digests.map((digest) => Buffer.from(digest, 'latin1'))
        const found = await findCallers(db, hashes)
        return new Map(found.map(({ hash, ...caller }) => [hash.toString('latin1'), caller]))
      },
    })
  }

  /** The caller with this secret. Null for every cause alike: unknown, expired, revoked, or not from this address. */
  async authenticate(secret: string | undefined, ip: string): Promise<Caller | null> {
    if (secret === undefined || secret.length > maxSecret) return null
    const digest = hashSecret(secret).toString('latin1')
    const known = this.#callers.recall(digest)
    if (known === undefined && !isSecret(secret)) return null
    const caller = known === undefined ? await this.#callers.find(digest) : known
    return caller && this.#mayCall(caller, ip) ? caller : null
  }

  #mayCall({ expiresAt, allowedIps }: Caller, ip: string): boolean {
    if (expiresAt && expiresAt.getTime() <= this.#clock.nowMs()) return false
    return !allowedIps || allowedIps.includes(ip)
  }
}

const windowMs = 60_000
/** A killed node loses the requests that it borrowed: never more than this. */
const maxSlice = 1_000

interface Slice {
  windowStartMs: number
  left: number
  granted: number
  borrowing: Promise<void> | null
}

export interface Admission {
  isAllowed: boolean
  limit: number
  remaining: number
  resetSeconds: number
}

/** Counts requests per key and minute. A node borrows slices of 5 % of the window, so that most requests do not write. */
export class RequestRate {
  readonly #db: Db
  readonly #clock: Clock
  readonly #slices = new BoundedMap<string, Slice>(maxKeys)

  constructor({ db, clock }: { db: Db; clock: Clock }) {
    this.#db = db
    this.#clock = clock
  }

  async admit(caller: Caller): Promise<Admission> {
    const limit = caller.requestsPerMinute
    let slice = this.#slice(caller)
    while (slice.left === 0 && slice.granted < limit) {
      slice.borrowing ??= this.#borrow(caller, slice)
      await slice.borrowing
      slice = this.#slice(caller)
    }
    const isAllowed = slice.left > 0
    if (isAllowed) slice.left--
    const resetMs = slice.windowStartMs + windowMs - this.#clock.nowMs()
    const resetSeconds = Math.max(1, Math.ceil(resetMs / 1000))
    return {
      isAllowed,
      limit,
      remaining: Math.max(0, limit - slice.granted + slice.left),
      resetSeconds,
    }
  }

  /** This node's slice of the current minute. */
  #slice({ id }: Caller): Slice {
    const nowMs = this.#clock.nowMs()
    const windowStartMs = nowMs - (nowMs % windowMs)
    const known = this.#slices.get(id)
    if (known?.windowStartMs === windowStartMs) return known
    const slice = { windowStartMs, left: 0, granted: 0, borrowing: null }
    this.#slices.set(id, slice)
    return slice
  }

  async #borrow(caller: Caller, slice: Slice): Promise<void> {
    const wanted = Math.min(maxSlice, Math.max(1, Math.ceil(caller.requestsPerMinute * 0.05)))
    const windowStart = new Date(slice.windowStartMs)
    try {
      const { lent, granted } = await borrowRequests(this.#db.writer, caller, windowStart, wanted)
      slice.left += lent
      slice.granted = granted
    } finally {
      slice.borrowing = null
    }
  }
}
