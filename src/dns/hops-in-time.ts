// Finds the hops of many domains before a deadline, with limits on each asker's look-ups, at once and per minute.
import type { Clock } from '../base/clock.ts'
import { divided } from '../base/share.ts'
import type { Awaitable } from '../base/within.ts'
import type { HopFinder, Hops } from './mx.ts'

export interface HopsInTimeOptions {
  hopFinder: Pick<HopFinder, 'find' | 'recall'>
  clock: Clock
  /** Counts the domains that one asker looks up in a minute. */
  minutes?: LookupMinutes
  /** The processes that divide the next three limits. */
  workers?: number
  /** Domains looked up at once. */
  maxLookups?: number
  /** Domains looked up at once for one asker, so that one with many silent domains leaves room for others. */
  maxOfAsker?: number
  /** Domains that wait for a slot. Further domains get the answer `temporary`. */
  maxWaiting?: number
}

interface Wanted {
  asker: string
  domain: string
  found: (hops: Hops) => void
}

const minuteMs = 60_000
const unanswered: Hops = { status: 'temporary', reason: 'DNS did not answer in time' }
const tooMany: Hops = { status: 'temporary', reason: 'too many look-ups are under way' }

/** Counts look-ups: in this process, or in the supervisor for all workers. */
export interface LookupMinutes {
  /** Counts `count` look-ups of the asker, or none of them: then the seconds until they may be asked for. */
  take(asker: string, count: number): Awaitable<number | null>
}

/** Domains that one asker may look up in a minute. Each costs up to 40 queries, to servers that its owner names. */
const maxPerMinute = 600

/** The look-ups of one process. */
export class OwnLookupMinutes implements LookupMinutes {
  readonly #clock: Clock
  readonly #max: number
  readonly #minutes = new Map<string, { count: number; untilMs: number }>()

  constructor(clock: Clock, max = maxPerMinute) {
    this.#clock = clock
    this.#max = max
  }

  take(asker: string, count: number): number | null {
    const nowMs = this.#clock.monotonicMs()
    const minute = this.#minute(asker, nowMs)
    if (minute.count + count > this.#max) return (minute.untilMs - nowMs) / 1000
    minute.count += count
    return null
  }

  #minute(asker: string, nowMs: number): { count: number; untilMs: number } {
    let minute = this.#minutes.get(asker)
    if (minute && nowMs < minute.untilMs) return minute
    // The minutes are ordered by their ends.
    for (const [other, { untilMs }] of this.#minutes) {
      if (nowMs < untilMs) break
      this.#minutes.delete(other)
    }
    minute = { count: 0, untilMs: nowMs + minuteMs }
    this.#minutes.set(asker, minute)
    return minute
  }
}

export class HopsInTime {
  readonly #options: Required<HopsInTimeOptions>
  /** In order of arrival. */
  readonly #waiting = new Set<Wanted>()
  readonly #underWay = new Map<string, number>()
  #lookups = 0

  constructor(options: HopsInTimeOptions) {
    const minutes = new OwnLookupMinutes(options.clock)
    const { workers = 1 } = options
    this.#options = {
      minutes,
      workers,
      maxLookups: divided(512, workers),
      maxOfAsker: divided(128, workers),
      maxWaiting: divided(10_000, workers),
      ...options,
    }
  }

  /**
   * Counts the domains that are not in the cache. If they exceed the asker's limit per minute, counts none of them, and
   * returns the number of seconds until they may be asked for.
   */
  async admit(asker: string, domains: Iterable<string>): Promise<number | null> {
    const unknown = [...new Set(domains)].filter((domain) => !this.#options.hopFinder.recall(domain)).length
    return await this.#options.minutes.take(asker, unknown)
  }

  /**
   * The hops of every domain. `temporary` for domains that DNS has not answered within `deadlineMs`. Look-ups under way
   * continue after it and are remembered, so that a later call finds their answers. Never rejects.
   */
  async find(asker: string, domains: Iterable<string>, deadlineMs: number): Promise<Map<string, Hops>> {
    const hops = new Map<string, Hops>()
    const wanted: Wanted[] = []
    const { promise: late, resolve } = Promise.withResolvers<void>()
    for (const domain of new Set(domains)) {
      const known = this.#options.hopFinder.recall(domain)
      hops.set(domain, known ?? unanswered)
      if (known) continue
      const found = (answer: Hops) => {
        hops.set(domain, answer)
        if (--open === 0) resolve()
      }
      wanted.push({ asker, domain, found })
    }
    let open = wanted.length
    if (open === 0) return hops
    const timer = setTimeout(resolve, deadlineMs)
    for (const one of wanted) this.#want(one)
    await late
    clearTimeout(timer)
    for (const one of wanted) this.#waiting.delete(one)
    return new Map(hops)
  }

  #want(wanted: Wanted): void {
    if (this.#waiting.size >= this.#options.maxWaiting) {
      wanted.found(tooMany)
      return
    }
    this.#waiting.add(wanted)
    this.#depart()
  }

  #depart(): void {
    for (const wanted of this.#waiting) {
      if (this.#lookups >= this.#options.maxLookups) return
      if ((this.#underWay.get(wanted.asker) ?? 0) >= this.#options.maxOfAsker) continue
      this.#waiting.delete(wanted)
      void this.#lookup(wanted)
    }
  }

  async #lookup({ asker, domain, found }: Wanted): Promise<void> {
    this.#count(asker, 1)
    found(await this.#options.hopFinder.find(domain, { asker }))
    this.#count(asker, -1)
    this.#depart()
  }

  #count(asker: string, change: 1 | -1): void {
    this.#lookups += change
    const count = (this.#underWay.get(asker) ?? 0) + change
    if (count > 0) this.#underWay.set(asker, count)
    else this.#underWay.delete(asker)
  }
}
