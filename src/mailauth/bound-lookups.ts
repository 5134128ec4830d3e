// Bounds the DNS questions of one mail: a maximum number, each asked once, none after the deadline.
import type { Clock } from '../base/clock.ts'
import { type Awaitable, within } from '../base/within.ts'
import type { DnsAnswer, DnsRecords, DnsType } from '../dns/resolver.ts'
import type { Lookup } from './lookup.ts'

export interface LookupBounds {
  /** Different questions. Stops mails whose policies and signatures ask for a thousand names. */
  maxQuestions: number
  /** On the monotonic clock. A question that has no answer by then is `temporary`. */
  untilMs: number
  clock: Pick<Clock, 'monotonicMs'>
}

/**
 * The same look-ups within bounds. A question beyond them is `temporary`. A repeated question gets its first answer, so
 * that all checks of a mail agree. Never rejects, if `lookup` does not.
 */
export function boundLookups(lookup: Lookup, { maxQuestions, untilMs, clock }: LookupBounds): Lookup {
  const answers = new Map<string, Awaitable<DnsAnswer<unknown>>>()
  const late = (): DnsAnswer<never> => ({ status: 'temporary', reason: 'DNS did not answer in time' })
  const ask = (type: DnsType, name: string): Awaitable<DnsAnswer<unknown>> => {
    const leftMs = untilMs - clock.monotonicMs()
    if (leftMs <= 0) return late()
    const answer: Awaitable<DnsAnswer<unknown>> = lookup(type, name)
    return answer instanceof Promise ? within(leftMs, answer, late) : answer
  }
  return <Type extends DnsType>(type: Type, name: string) => {
    const key = `${type} ${name.toLowerCase()}`
    let answer = answers.get(key)
    if (!answer) {
      if (answers.size >= maxQuestions)
        return { status: 'temporary', reason: `this mail asks DNS for more than ${maxQuestions} records` }
      answer = ask(type, name)
      answers.set(key, answer)
    }
    return answer as Awaitable<DnsAnswer<DnsRecords[Type]>>
  }
}
