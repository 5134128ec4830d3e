// Asks DNS for all the records that a domain must publish, each question once, within one deadline.
import { within } from '../base/within.ts'
import { type DomainRecord, fitsDns, questionOf } from './domain-records.ts'
import type { DnsAnswer, DnsRecords, Resolver } from './resolver.ts'

export type RecordAnswer = DnsAnswer<DnsRecords['TXT'] | DnsRecords['MX']>

/** The answers of DNS, by `questionOf` the record. Does not ask for names that DNS cannot hold. */
export type RecordAnswers = ReadonlyMap<string, RecordAnswer>

/** Never rejects. Answers within `deadlineMs` (10 s), which aborts open questions: their answers are `temporary`. */
export async function lookupRecords(
  resolver: Pick<Resolver, 'resolve'>,
  records: readonly DomainRecord[],
  { deadlineMs = 10_000, asker = '' }: { deadlineMs?: number; asker?: string } = {},
): Promise<RecordAnswers> {
  const asked = new Map(
    records.filter(({ name }) => fitsDns(name)).map((record) => [questionOf(record), record]),
  )
  const ending = new AbortController()
  const asking = { asker, signal: ending.signal }
  const late = (): RecordAnswer => {
    ending.abort()
    return { status: 'temporary', reason: 'DNS did not answer in time' }
  }
  const answers = [...asked].map(async ([question, { type, name }]) => {
    const answer: Promise<RecordAnswer> = resolver.resolve(type, name, asking)
    return [question, await within(deadlineMs, answer, late)] as const
  })
  return new Map(await Promise.all(answers))
}
