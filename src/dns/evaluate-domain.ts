// Compares a domain's DNS answers with the records that it must publish. Pure, so that repeated checks agree.
import { type DomainRecord, dkimRecordOf, fitsDns, questionOf } from './domain-records.ts'
import type { RecordAnswer, RecordAnswers } from './lookup-domain.ts'

export interface RecordVerdict {
  status: 'valid' | 'missing' | 'mismatch' | 'error'
  /** Values in DNS: texts, or hosts by preference. Limited in number and length. */
  observed: string[]
  /** Why the record is not valid, in a sentence. Null if it is valid. */
  reason: string | null
}

/** `unknown`: a record that decides could not be looked up, so the check proves nothing. */
export interface CapabilityVerdict {
  result: 'holds' | 'broken' | 'unknown'
  reasons: string[]
}

export interface DomainEvaluation {
  /** By `questionOf` the record. Contains only records that were looked up, or whose name is too long for DNS. */
  records: Map<string, RecordVerdict>
  ownership: CapabilityVerdict
  outbound: CapabilityVerdict
  inbound: CapabilityVerdict
}

const maxObserved = 20
const maxObservedLength = 600

/** `holder`: whether another organization has proved the name. */
export function evaluate(
  expected: readonly DomainRecord[],
  found: RecordAnswers,
  holder: 'nobody' | 'another',
): DomainEvaluation {
  const evaluated = expected.flatMap((record) => {
    const answer = found.get(questionOf(record))
    if (!fitsDns(record.name)) return [{ record, verdict: tooLong(record) }]
    return answer ? [{ record, verdict: evaluateRecord(record, answer) }] : []
  })
  const of = (purpose: DomainRecord['purpose']) =>
    evaluated
      .filter(({ record }) => record.purpose === purpose && record.required)
      .map(({ verdict }) => verdict)
  const taken: CapabilityVerdict[] =
    holder === 'another'
      ? [{ result: 'broken', reasons: ['Another organization has proved that this name is its own.'] }]
      : []
  const ownership = all([...taken, any(of('ownership'))])
  return {
    records: new Map(evaluated.map(({ record, verdict }) => [questionOf(record), verdict])),
    ownership,
    outbound: all([ownership, any(of('dkim')), any(of('return_path'))]),
    inbound: all([ownership, any(of('mx'))]),
  }
}

/** The selectors of keys that DNS publishes correctly. */
export function selectorsSeen(
  keys: readonly { domain: string; selector: string; publicRecord: string }[],
  { records }: Pick<DomainEvaluation, 'records'>,
): string[] {
  return keys
    .filter((key) => records.get(questionOf(dkimRecordOf(key)))?.status === 'valid')
    .map(({ selector }) => selector)
}

/** One valid record is enough. If none is valid, a record that could not be looked up might be. */
function any(verdicts: RecordVerdict[]): CapabilityVerdict {
  if (verdicts.some(({ status }) => status === 'valid')) return { result: 'holds', reasons: [] }
  const isUnknown = verdicts.length === 0 || verdicts.some(({ status }) => status === 'error')
  return {
    result: isUnknown ? 'unknown' : 'broken',
    reasons: verdicts.flatMap(({ reason }) => reason ?? []),
  }
}

function all(verdicts: CapabilityVerdict[]): CapabilityVerdict {
  const result = (['broken', 'unknown'] as const).find((bad) =>
    verdicts.some((verdict) => verdict.result === bad),
  )
  return { result: result ?? 'holds', reasons: verdicts.flatMap(({ reasons }) => reasons) }
}

function tooLong({ name }: DomainRecord): RecordVerdict {
  return error(`${name} is ${name.length} characters long, and DNS holds names of 253 at most.`)
}

function error(reason: string): RecordVerdict {
  return { status: 'error', observed: [], reason }
}

function evaluateRecord(record: DomainRecord, answer: RecordAnswer): RecordVerdict {
  const { type, name } = record
  if (answer.status === 'temporary') return error(`${name} ${type} could not be looked up: ${answer.reason}.`)
  if (answer.status !== 'ok')
    return { status: 'missing', observed: [], reason: `${name} has no ${type} record.` }
  const fault =
    type === 'MX' ? evaluateHosts(record, hostsOf(answer)) : evaluateTexts(record, textsOf(answer))
  const observed = type === 'MX' ? hostsOf(answer).map(({ exchange }) => exchange || '.') : textsOf(answer)
  return {
    status: fault === null ? 'valid' : 'mismatch',
    observed: observed.slice(0, maxObserved).map(showable),
    reason: fault,
  }
}

type OkAnswer = Extract<RecordAnswer, { status: 'ok' }>

function hostsOf({ records }: OkAnswer): { exchange: string; preference: number }[] {
  return records
    .filter((record) => typeof record === 'object')
    .sort((one, other) => one.preference - other.preference)
}

function textsOf({ records }: OkAnswer): string[] {
  return records.filter((record) => typeof record === 'string')
}

/** Makes a text safe for JSON and pages, so that NUL and lone surrogates do not get into the database. */
function showable(text: string): string {
  return text
    .slice(0, maxObservedLength)
    .replaceAll(/\p{Cc}/gu, '\ufffd')
    .toWellFormed()
}

/** Why the mail servers of a name are wrong. Null if they are right. */
function evaluateHosts(
  { name, value }: DomainRecord,
  hosts: { exchange: string; preference: number }[],
): string | null {
  const ours = hosts.find(({ exchange }) => exchange === value.toLowerCase())
  if (!ours) return `${name} has other mail servers than ${value}.`
  // RFC 5321 5.1: mail goes to the most preferred server as long as that answers.
  return ours.preference > hosts[0]!.preference ? `${name} prefers another mail server to ${value}.` : null
}

/** Why the texts of a name are wrong. Null if they are right. */
function evaluateTexts({ purpose, name, value }: DomainRecord, texts: string[]): string | null {
  switch (purpose) {
    case 'ownership':
      return texts.includes(value) ? null : `${name} does not hold the challenge.`
    case 'dkim':
      return evaluateKeys(name, value, texts)
    case 'spf':
      return evaluatePolicies(name, value, texts)
    case 'dmarc':
      return evaluateVersion(name, /^v\s*=\s*DMARC1\s*(?:;|$)/, texts)
    case 'mta_sts':
      return evaluateVersion(name, /^v=STSv1\s*;/, texts)
    default:
      return evaluateVersion(name, /^v=TLSRPTv1\s*;/, texts)
  }
}

function evaluateKeys(name: string, value: string, texts: string[]): string | null {
  // RFC 6376 3.6.2.2: with several records at one selector, it is undefined which of them a verifier uses.
  if (texts.length !== 1) return `${name} has ${texts.length} TXT records where there must be one.`
  const [wanted, published] = [readTags(value), readTags(texts[0]!)]
  if (published.get('p') === '') return `${name} says that the key is revoked.`
  const isSame =
    published.get('p') === wanted.get('p') &&
    (published.get('v') ?? 'DKIM1') === 'DKIM1' &&
    // RFC 6376 3.6.1: without k= the key is RSA, without h= any hash is allowed, without s= any service.
    (published.get('k') ?? 'rsa') === wanted.get('k') &&
    list(published.get('h') ?? 'sha256').includes('sha256') &&
    list(published.get('s') ?? '*').some((use) => use === '*' || use === 'email')
  return isSame ? null : `${name} has another key.`
}

/** The tags of a record, without the white space in their values. If a tag is repeated, the first one counts. */
function readTags(text: string): Map<string, string> {
  const tags = new Map<string, string>()
  for (const part of text.split(';')) {
    const equals = part.indexOf('=')
    if (equals < 0) continue
    const name = part.slice(0, equals).trim()
    // RFC 6376 3.2: white space within a base64 value means nothing, and none of our values has any.
    if (!tags.has(name)) tags.set(name, part.slice(equals + 1).replaceAll(/\s/g, ''))
  }
  return tags
}

function list(value: string): string[] {
  return value.split(':')
}

function evaluatePolicies(name: string, value: string, texts: string[]): string | null {
  // RFC 7208 4.5: only texts that begin like this are policies, and two of them are an error.
  const policies = texts.filter((text) => /^v=spf1(?: |$)/i.test(text))
  if (policies.length > 1) return `${name} has ${policies.length} SPF policies where there must be one.`
  const terms = policies[0]?.toLowerCase().split(' ') ?? []
  const needed = value.toLowerCase().split(' ')[1]!
  // The name's MX is our mail host, so a bare "mx" allows the same.
  return terms.some((term) => [needed, `+${needed}`, 'mx', '+mx'].includes(term))
    ? null
    : `${name} has no SPF policy that allows ${needed.slice(2)}.`
}

/** Recommended records belong to the customer. Any content is right, but there must be one of their kind. */
function evaluateVersion(name: string, version: RegExp, texts: string[]): string | null {
  const count = texts.filter((text) => version.test(text)).length
  return count === 1 ? null : `${name} has ${count} such records where there must be one.`
}
