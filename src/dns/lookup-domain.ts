// Asks DNS for everything that a domain must publish, each question once, all of them within one deadline.
import { within } from '../base/within.ts'
import { type DomainRecord, fitsDns, questionOf } from './domain-records.ts'
import type { DnsAnswer, DnsRecords, Resolver } from './resolver.ts'

export type Answer = DnsAnswer<DnsRecords['TXT'] | DnsRecords['MX']>

/** What DNS answered, by `questionOf` the record. Names that DNS cannot hold are not asked for. */
export type Found = ReadonlyMap<string, Answer>

/** Never rejects, and answers within `deadlineMs` (10 s), which ends its questions: what has not come is not to be known now. */
export async function lookupRecords(
  resolver: Pick<Resolver, 'resolve'>,
  records: readonly DomainRecord[],
  { deadlineMs = 10_000, asker = '' }: { deadlineMs?: number; asker?: string } = {},
): Promise<Found> {
  const asked = new Map(
    records.filter(({ name }) => fitsDns(name)).map((record) => [questionOf(record), record]),
  )
  const ending = new AbortController()
  const asking = { asker, signal: ending.signal }
  const late = (): Answer => {
    ending.abort()
    return { status: 'temporary', reason: 'DNS did not answer in time' }
  }
  const answers = [...asked].map(async ([question, { type, name }]) => {
    const answer: Promise<Answer> = resolver.resolve(type, name, asking)
    return [question, await within(deadlineMs, answer, late)] as const
  })
  return new Map(await Promise.all(answers))
}
