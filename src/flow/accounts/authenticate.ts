// Who is calling: a key's digest looked up and cached for a second, and the requests it has left in its minute.
import type { Clock } from '../../base/clock.ts'
import { upon } from '../../base/upon.ts'
import type { Db } from '../../postgres/db.ts'
import { borrowRequests, findCaller } from '../../store/keys.ts'
import type { Caller } from '../caller.ts'
import { hashSecret, isSecret, keyCacheMs } from './key.ts'

const maxCached = 10_000
/** Longer than any key: what is longer is not worth a digest. */
const longestSecret = 100

interface CachedCaller {
  /** A promise until it has been looked up. */
  caller: Caller | null | Promise<Caller | null>
  untilMs: number
}

/** Knows the callers of the last second. */
export class KeyRing {
  readonly #db: Db
  readonly #clock: Clock
  readonly #cached = new Map<string, CachedCaller>()

  constructor({ db, clock }: { db: Db; clock: Clock }) {
    this.#db = db
    this.#clock = clock
  }

  /** The caller behind the secret, or null for every cause alike: unknown, expired, revoked, or not from this address. */
  authenticate(secret: string | undefined, ip: string): Caller | null | Promise<Caller | null> {
    if (secret === undefined || secret.length > longestSecret) return null
    return upon(this.#find(secret), (caller) => (caller && this.#mayCall(caller, ip) ? caller : null))
  }

  #mayCall({ expiresAt, allowedIps }: Caller, ip: string): boolean {
    if (expiresAt && expiresAt.getTime() <= this.#clock.nowMs()) return false
    return !allowedIps || allowedIps.includes(ip)
  }

  #find(secret: string): Caller | null | Promise<Caller | null> {
    const now = this.#clock.monotonicMs()
    // By its digest: how long a look into the map takes says nothing of the secret, and no secret is kept.
    const hash = hashSecret(secret)
    const name = hash.toString('latin1')
    const known = this.#cached.get(name)
    if (known && now < known.untilMs) return known.caller
    if (!isSecret(secret)) return null
    this.#cached.delete(name)
    if (this.#cached.size >= maxCached) this.#cached.delete(this.#cached.keys().next().value!)
    const caller = findCaller(this.#db, hash)
    const cached: CachedCaller = { caller, untilMs: now + keyCacheMs }
    this.#cached.set(name, cached)
    caller.then(
      (found) => (cached.caller = found),
      () => this.#cached.delete(name),
    )
    return caller
  }
}

const windowMs = 60_000
/** What a node has borrowed is gone when it is killed: never more than this many requests. */
const maxSlice = 1_000

interface Slice {
  windowStartMs: number
  left: number
  granted: number
  borrowing: Promise<void> | null
}

export interface Admission {
  allowed: boolean
  limit: number
  remaining: number
  resetSeconds: number
}

/** Counts requests per key and minute. A node borrows slices of 5 % of the window, so that reading does not write. */
export class RequestRate {
  readonly #db: Db
  readonly #clock: Clock
  readonly #slices = new Map<string, Slice>()

  constructor({ db, clock }: { db: Db; clock: Clock }) {
    this.#db = db
    this.#clock = clock
  }

  admit(caller: Caller): Admission | Promise<Admission> {
    const limit = caller.requestsPerMinute
    const nowMs = this.#clock.nowMs()
    const windowStartMs = Math.floor(nowMs / windowMs) * windowMs
    const slice = this.#slice(caller.id, windowStartMs)
    if (slice.left === 0 && slice.granted < limit) {
      slice.borrowing ??= this.#borrow(caller, slice).finally(() => (slice.borrowing = null))
      return slice.borrowing.then(() => this.admit(caller))
    }
    const allowed = slice.left > 0
    if (allowed) slice.left--
    const resetSeconds = Math.max(1, Math.ceil((windowStartMs + windowMs - nowMs) / 1000))
    return { allowed, limit, remaining: Math.max(0, limit - slice.granted + slice.left), resetSeconds }
  }

  #slice(keyId: string, windowStartMs: number): Slice {
    let slice = this.#slices.get(keyId)
    if (slice?.windowStartMs === windowStartMs) return slice
    if (this.#slices.size >= maxCached) this.#slices.clear()
    slice = { windowStartMs, left: 0, granted: 0, borrowing: null }
    this.#slices.set(keyId, slice)
    return slice
  }

  async #borrow(caller: Caller, slice: Slice): Promise<void> {
    const wanted = Math.min(maxSlice, Math.max(1, Math.ceil(caller.requestsPerMinute * 0.05)))
    const { lent, granted } = await borrowRequests(
      this.#db.writer,
      caller,
      new Date(slice.windowStartMs),
      wanted,
    )
    slice.left += lent
    slice.granted = lent === 0 ? caller.requestsPerMinute : granted
  }
}
