// Caches DNS answers for their TTL, in one bounded cache per process that no asker can fill alone.
import { BoundedMap } from '../base/bounded-map.ts'
import type { Clock } from '../base/clock.ts'
import { RecentlyUsed } from '../base/recently-used.ts'
import { divided } from '../base/share.ts'
import { ShareLimit } from '../base/share-limit.ts'
import { type Awaitable, within } from '../base/within.ts'
import type { DnsAnswer, DnsRecords, DnsType, Resolver } from './resolver.ts'

export interface DnsCacheOptions {
  resolver: Pick<Resolver, 'resolve'>
  clock: Clock
  /** The processes that divide the next four limits. */
  workers?: number
  maxEntries?: number
  maxBytes?: number
  /** Questions under way at the same time: as many as unbound handles in one thread. */
  maxAsking?: number
  /** Questions that wait for a slot. */
  maxWaiting?: number
  /** Time limit of a question, its wait included. A look-up that has begun continues after it, and its answer is kept. */
  deadlineMs?: number
}

type Lookup = <Type extends DnsType>(type: Type, name: string) => Awaitable<DnsAnswer<DnsRecords[Type]>>

interface Entry {
  answer: DnsAnswer<unknown>
  askedBy: string
  receivedMs: number
  untilMs: number
}

interface Wanted {
  asker: string
  type: DnsType
  name: string
  key: string
}

const maxAnswerMs = 3_600_000
// RFC 2308 5: absences should not be held for long, and one to three hours are enough. We hold them for less, so that a
// newly published record is seen soon.
const maxAbsenceMs = 300_000
/** Spares a failing server a question for each mail of a batch. RFC 2308 7.1 allows five minutes. */
const temporaryMs = 2_000
/** Larger answers are not kept, because each would evict many others. */
const maxEntryBytes = 32_768
/** Share of the cache for names that only one asker has asked for. The rest is for names that several asked for. */
const newShare = 0.25
const maxHeldUp = 10_000
const entryBytes = 256
const recordBytes = 96

export class DnsCache {
  /** Look-ups for the node itself, not for a stranger. */
  readonly lookup: Lookup = this.lookupFor('')
  readonly #options: Required<DnsCacheOptions>
  readonly #limit: ShareLimit
  /** Answers that only one asker has asked for. Thousands of names from one asker evict only each other. */
  readonly #new: RecentlyUsed<Entry>
  readonly #shared: RecentlyUsed<Entry>
  readonly #asking = new Map<string, Promise<DnsAnswer<unknown>>>()
  /** The last time that a question of each asker had to wait for a slot. */
  readonly #heldUpMs = new BoundedMap<string, number>(maxHeldUp)

  constructor(options: DnsCacheOptions) {
    this.#options = {
      workers: 1,
      maxEntries: 20_000,
      maxBytes: 16 << 20,
      maxAsking: 1_024,
      maxWaiting: 4_096,
      deadlineMs: 10_000,
      ...options,
    }
    const { workers, maxEntries, maxBytes, maxAsking, maxWaiting } = this.#options
    const part = (share: number) => ({
      maxEntries: divided(Math.floor(maxEntries * share), workers),
      maxBytes: divided(Math.floor(maxBytes * share), workers),
    })
    this.#new = new RecentlyUsed(part(newShare))
    this.#shared = new RecentlyUsed(part(1 - newShare))
    this.#limit = new ShareLimit({
      max: divided(maxAsking, workers),
      maxWaiting: divided(maxWaiting, workers),
    })
  }

  /** Current contents, for measurements. */
  get size(): { entries: number; bytes: number; asking: number } {
    return {
      entries: this.#new.count + this.#shared.count,
      bytes: this.#new.sizeBytes + this.#shared.sizeBytes,
      asking: this.#asking.size,
    }
  }

  /**
   * Look-ups on behalf of `asker`, such as the network that a mail comes from. The asker has a share of the questions
   * under way. Names that only it asks for evict nothing that others use. Returns a known answer directly, and any other
   * as a promise, which never rejects if the resolver does not.
   */
  lookupFor(asker: string): Lookup {
    return <Type extends DnsType>(type: Type, name: string) => {
      const lower = name.toLowerCase()
      const key = `${type} ${lower.endsWith('.') ? lower.slice(0, -1) : lower}`
      const wanted = { asker, type, name, key }
      const known = this.#recall(wanted)
      return (known ?? this.#find(wanted)) as Awaitable<DnsAnswer<DnsRecords[Type]>>
    }
  }

  /**
   * Whether a question of the asker has had to wait since `sinceMs`, on the monotonic clock. Then a missing answer may
   * be the asker's own fault, not that of DNS.
   */
  wasHeldUp(asker: string, sinceMs: number): boolean {
    return (this.#heldUpMs.get(asker) ?? Number.NEGATIVE_INFINITY) >= sinceMs
  }

  async #find(wanted: Wanted): Promise<DnsAnswer<unknown>> {
    const asking = this.#asking.get(wanted.key) ?? this.#askWhenAdmitted(wanted)
    const late = () => temporary('DNS did not answer in time')
    return withOwnRecords(await within(this.#options.deadlineMs, asking, late))
  }

  #recall({ asker, key }: Wanted): DnsAnswer<unknown> | null {
    const nowMs = this.#options.clock.monotonicMs()
    const entry = this.#shared.use(key) ?? this.#new.use(key)
    if (!entry || entry.untilMs <= nowMs) return null
    if (entry.askedBy !== asker) this.#share(key, entry)
    return aged(entry.answer, Math.floor((nowMs - entry.receivedMs) / 1000))
  }

  /** Moves the entry to the shared part, because another asker asked for it too. */
  #share(key: string, entry: Entry): void {
    if (this.#shared.has(key)) return
    this.#new.delete(key)
    this.#shared.set(key, entry, weigh(key, entry.answer))
  }

  async #askWhenAdmitted(wanted: Wanted): Promise<DnsAnswer<unknown>> {
    const { asker, key } = wanted
    if (this.#limit.isUsedUp(asker)) this.#heldUpMs.set(asker, this.#options.clock.monotonicMs())
    if (!(await this.#limit.enter(asker, this.#options.deadlineMs)))
      return temporary('too many DNS questions are under way')
    // During the wait another asker may have asked the same question.
    const known = this.#recall(wanted) ?? this.#asking.get(key)
    if (known) {
      this.#limit.leave(asker)
      return await known
    }
    const asking = this.#ask(wanted).finally(() => {
      this.#asking.delete(key)
      this.#limit.leave(asker)
    })
    this.#asking.set(key, asking)
    return await asking
  }

  async #ask(wanted: Wanted): Promise<DnsAnswer<unknown>> {
    const answer = await this.#options.resolver.resolve(wanted.type, wanted.name)
    this.#keep(wanted, answer)
    return answer
  }

  #keep({ asker, key }: Wanted, answer: DnsAnswer<unknown>): void {
    const receivedMs = this.#options.clock.monotonicMs()
    const sizeBytes = weigh(key, answer)
    const forMs = lifeOf(answer)
    const before = this.#new.use(key)
    const isShared = this.#shared.has(key) || (before !== undefined && before.askedBy !== asker)
    this.#new.delete(key)
    this.#shared.delete(key)
    if (forMs === 0 || sizeBytes > maxEntryBytes) return
    const entry = { answer, askedBy: asker, receivedMs, untilMs: receivedMs + forMs }
    const room = isShared ? this.#shared : this.#new
    room.set(key, entry, sizeBytes)
  }
}

function temporary(reason: string): DnsAnswer<never> {
  return { status: 'temporary', reason }
}

/** Copies the records, because an asker may sort them. */
function withOwnRecords<Record>(answer: DnsAnswer<Record>): DnsAnswer<Record> {
  return answer.status === 'ok' ? { ...answer, records: [...answer.records] } : answer
}

/** An answer with no TTL, or with TTL 0, goes only to the askers that already wait for it. */
function lifeOf(answer: DnsAnswer<unknown>): number {
  if (answer.status === 'temporary') return temporaryMs
  const maxMs = answer.status === 'ok' ? maxAnswerMs : maxAbsenceMs
  return Math.min((answer.ttlSeconds ?? 0) * 1000, maxMs)
}

/** The answer with its remaining TTL and a copy of its records. */
function aged(answer: DnsAnswer<unknown>, seconds: number): DnsAnswer<unknown> {
  if (answer.status === 'temporary') return answer
  const ttlSeconds = Math.max(0, (answer.ttlSeconds ?? 0) - seconds)
  return withOwnRecords({ ...answer, ttlSeconds })
}

/** Estimated memory of the entry. */
function weigh(key: string, answer: DnsAnswer<unknown>): number {
  const records = answer.status === 'ok' ? answer.records : []
  return records.reduce<number>(
    (sum, record) => sum + recordBytes + lengthOf(record),
    entryBytes + 2 * key.length,
  )
}

function lengthOf(record: unknown): number {
  if (typeof record === 'string') return 2 * record.length
  const texts = Object.values(record as object).filter((value) => typeof value === 'string')
  return texts.reduce((sum, text) => sum + 2 * text.length, 0)
}
