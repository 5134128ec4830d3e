// Asks DNS for everything that a domain must publish, each question once, all of them within one deadline.
import { within } from '../base/within.ts'
import { type DomainRecord, fitsDns, questionOf } from './domain-records.ts'
import type { DnsAnswer, DnsRecords, Resolver } from './resolver.ts'

export type Answer = DnsAnswer<DnsRecords['TXT'] | DnsRecords['MX']>

/** What DNS answered, by `questionOf` the record. Names that DNS cannot hold are not asked for. */
export type Found = ReadonlyMap<string, Answer>

const deadlineMs = 10_000

/** Never rejects, and answers within `options.deadlineMs` (10 s): what has not come by then is not to be known now. */
export async function lookupRecords(
  resolver: Pick<Resolver, 'resolve'>,
  records: readonly DomainRecord[],
  options: { deadlineMs?: number } = {},
): Promise<Found> {
  const asked = new Map(
    records.filter(({ name }) => fitsDns(name)).map((record) => [questionOf(record), record]),
  )
  const late = (): Answer => ({ status: 'temporary', reason: 'DNS did not answer in time' })
  const answers = [...asked].map(async ([question, { type, name }]) => {
    const answer: Promise<Answer> = resolver.resolve(type, name)
    return [question, await within(options.deadlineMs ?? deadlineMs, answer, late)] as const
  })
  return new Map(await Promise.all(answers))
}
