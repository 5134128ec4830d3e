// What DNS answered, known for as long as its TTL says: one bounded cache for the node, of which nobody takes all.
import { BoundedMap } from '../base/bounded-map.ts'
import type { Clock } from '../base/clock.ts'
import { RecentlyUsed } from '../base/recently-used.ts'
import { ShareLimit } from '../base/share-limit.ts'
import { type Awaitable, within } from '../base/within.ts'
import type { DnsAnswer, DnsRecords, DnsType, Resolver } from './resolver.ts'

export interface DnsCacheOptions {
  resolver: Pick<Resolver, 'resolve'>
  clock: Clock
  maxEntries?: number
  maxBytes?: number
  /** Questions under way at the same time: as many as unbound takes on in one thread. */
  maxAsking?: number
  /** Questions that wait for their turn. */
  maxWaiting?: number
  /** How long a question may take, its waiting included; one that has begun goes on after it, and is remembered. */
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
// RFC 2308 5: absences should not be held for long, and one to three hours are enough. Who has just published a record
// waits less here.
const maxAbsenceMs = 300_000
/** So that the mails of one batch do not each ask a server that is out of order. RFC 2308 7.1 allows five minutes. */
const temporaryMs = 2_000
/** What is larger is not kept: it would drive out many others. */
const maxEntryBytes = 32_768
/** Of the room: for what one asker alone has asked for. The rest is for what several did. */
const newShare = 0.25
const maxHeldUp = 10_000
const entryBytes = 256
const recordBytes = 96

export class DnsCache {
  /** Look-ups of the node's own, none of which is made for a stranger. */
  readonly lookup: Lookup = this.lookupFor('')
  readonly #options: Required<DnsCacheOptions>
  readonly #limit: ShareLimit
  /** What was asked for by one asker: thousands of names that nobody else asks for drive out only each other. */
  readonly #new: RecentlyUsed<Entry>
  readonly #shared: RecentlyUsed<Entry>
  readonly #asking = new Map<string, Promise<DnsAnswer<unknown>>>()
  /** When a question of an asker last had to wait for its turn. */
  readonly #heldUpMs = new BoundedMap<string, number>(maxHeldUp)

  constructor(options: DnsCacheOptions) {
    this.#options = {
      maxEntries: 20_000,
      maxBytes: 16 << 20,
      maxAsking: 1_024,
      maxWaiting: 4_096,
      deadlineMs: 10_000,
      ...options,
    }
    const { maxEntries, maxBytes, maxAsking, maxWaiting } = this.#options
    const part = (share: number) => ({
      maxEntries: Math.floor(maxEntries * share),
      maxBytes: Math.floor(maxBytes * share),
    })
    this.#new = new RecentlyUsed(part(newShare))
    this.#shared = new RecentlyUsed(part(1 - newShare))
    this.#limit = new ShareLimit({ max: maxAsking, maxWaiting })
  }

  /** What it holds now, for measurements. */
  get size(): { entries: number; bytes: number; asking: number } {
    return {
      entries: this.#new.count + this.#shared.count,
      bytes: this.#new.sizeBytes + this.#shared.sizeBytes,
      asking: this.#asking.size,
    }
  }

  /**
   * Look-ups on behalf of `asker`, such as the network that a mail comes from: it has its share of the questions under
   * way, and what it alone asks for drives out nothing that others use. What is known is returned as it is, what is
   * not as a promise, which never rejects, if the resolver does not.
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
   * Whether a question of the asker has had to wait since then, on the monotonic clock: that something is not known now
   * may be the asker's own doing, and says nothing of DNS.
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

  /** Another asks for it as well. */
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
    // While it waited, another may have asked the same.
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

/** Each asker may sort those that it gets. */
function withOwnRecords<Record>(answer: DnsAnswer<Record>): DnsAnswer<Record> {
  return answer.status === 'ok' ? { ...answer, records: [...answer.records] } : answer
}

/** An answer without a TTL, or with one of 0, is for those who wait for it, and for nobody else. */
function lifeOf(answer: DnsAnswer<unknown>): number {
  if (answer.status === 'temporary') return temporaryMs
  const maxMs = answer.status === 'ok' ? maxAnswerMs : maxAbsenceMs
  return Math.min((answer.ttlSeconds ?? 0) * 1000, maxMs)
}

/** With what is left of its TTL, and records of its own. */
function aged(answer: DnsAnswer<unknown>, seconds: number): DnsAnswer<unknown> {
  if (answer.status === 'temporary') return answer
  const ttlSeconds = Math.max(0, (answer.ttlSeconds ?? 0) - seconds)
  return withOwnRecords({ ...answer, ttlSeconds })
}

/** About how much memory the entry takes. */
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
