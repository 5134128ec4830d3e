// What one mail may ask of DNS: so many questions, each once, and none after its deadline.
import type { Clock } from '../base/clock.ts'
import { within } from '../base/within.ts'
import type { DnsAnswer, DnsRecords, DnsType } from '../dns/resolver.ts'
import type { Lookup } from './lookup.ts'

export interface LookupBounds {
  /** Different questions. Stops the mail whose policies and signatures have a thousand names asked for. */
  maxQuestions: number
  /** On the monotonic clock; a question that is not answered by then is not to be known now. */
  untilMs: number
  clock: Pick<Clock, 'monotonicMs'>
}

/**
 * The same look-ups within bounds. What goes past them is `temporary`; a question that is repeated gets the answer that
 * it got before, so that all checks of a mail judge by the same. Never rejects, if `lookup` does not.
 */
export function boundLookups(lookup: Lookup, { maxQuestions, untilMs, clock }: LookupBounds): Lookup {
  const answers = new Map<string, Promise<DnsAnswer<unknown>>>()
  const late = (): DnsAnswer<never> => ({ status: 'temporary', reason: 'DNS did not answer in time' })
  const ask = async (type: DnsType, name: string): Promise<DnsAnswer<unknown>> => {
    const leftMs = untilMs - clock.monotonicMs()
    return leftMs > 0 ? await within<DnsAnswer<unknown>>(leftMs, lookup(type, name), late) : late()
  }
  return async <Type extends DnsType>(type: Type, name: string) => {
    const key = `${type} ${name.toLowerCase()}`
    let answer = answers.get(key)
    if (!answer) {
      if (answers.size >= maxQuestions)
        return { status: 'temporary', reason: `this mail asks DNS for more than ${maxQuestions} records` }
      answer = ask(type, name)
      answers.set(key, answer)
    }
    return (await answer) as DnsAnswer<DnsRecords[Type]>
  }
}
