// Reverse DNS: finds the names of an address, and confirms each by the name's own addresses (RFC 8601 3, "iprev").
import type { DnsAnswer } from '../dns/resolver.ts'
import { clientIp, type IpBytes, parseIp, reverseName, writeIp } from './ip-network.ts'
import { type Asked, type Lookup, recordLookups } from './lookup.ts'

export interface ReverseDnsVerdict {
  result: 'pass' | 'fail' | 'temperror' | 'permerror'
  /** The first confirmed name, in lower case. Null unless `pass`. */
  name: string | null
  /** In a sentence. */
  reason: string
  asked: Asked[]
}

export interface ConfirmedNames {
  /** The result of the PTR question. */
  reverse: DnsAnswer<never>['status'] | 'ok'
  /** Confirmed names, in the order of DNS. */
  names: string[]
  /** Whether DNS did not answer for the addresses of a name. */
  hasUnknown: boolean
}

const maxNames = 10

/** Whether a name of the address leads back to it. Asks at most 11 questions. */
export async function checkReverseDns(lookup: Lookup, ip: string): Promise<ReverseDnsVerdict> {
  const recorded = recordLookups(lookup)
  const address = clientIp(ip)
  const confirmed = await confirmNames(recorded.lookup, address, maxNames)
  return { ...toVerdict(confirmed, writeIp(address)), asked: recorded.asked() }
}

function toVerdict(
  { reverse, names, hasUnknown }: ConfirmedNames,
  ip: string,
): Omit<ReverseDnsVerdict, 'asked'> {
  const without = { name: null }
  // RFC 8601 2.7.3: "temperror" if DNS may answer later, "permerror" without any name, "fail" if no name leads back.
  if (reverse === 'temporary')
    return { ...without, result: 'temperror', reason: `the names of ${ip} are not known now` }
  if (reverse !== 'ok') return { ...without, result: 'permerror', reason: `${ip} has no name` }
  if (names[0] !== undefined)
    return { result: 'pass', name: names[0], reason: `${ip} is ${names[0]}, which has that address` }
  if (hasUnknown)
    return { ...without, result: 'temperror', reason: `whether a name of ${ip} has it is not known now` }
  return { ...without, result: 'fail', reason: `no name of ${ip} has that address` }
}

/** Asks for the names of the address, and then for the addresses of the first `limit` names, all at once. */
export async function confirmNames(lookup: Lookup, ip: IpBytes, limit: number): Promise<ConfirmedNames> {
  const answer = await lookup('PTR', reverseName(ip))
  if (answer.status !== 'ok') return { reverse: answer.status, names: [], hasUnknown: false }
  // RFC 8601 3: the number of names is bounded, because the owner can give an address any number of them.
  const candidates = [...new Set(answer.records.slice(0, limit).map(toHostName))].filter(isHostName)
  const answers = await Promise.all(candidates.map((name) => hasAddress(lookup, name, ip)))
  return {
    reverse: 'ok',
    names: candidates.filter((_, index) => answers[index] === 'yes'),
    hasUnknown: answers.includes('unknown'),
  }
}

function toHostName(name: string): string {
  return name.replace(/\.$/, '').toLowerCase()
}

/** Anybody can put any name into a PTR record. Only names that are harmless in headers and logs count. */
function isHostName(name: string): boolean {
  return name.length <= 253 && name.split('.').every((label) => /^[a-z0-9_-]{1,63}$/.test(label))
}

async function hasAddress(lookup: Lookup, name: string, ip: IpBytes): Promise<'yes' | 'no' | 'unknown'> {
  const answer = await lookup(ip.length === 4 ? 'A' : 'AAAA', name)
  if (answer.status === 'temporary') return 'unknown'
  if (answer.status !== 'ok') return 'no'
  return answer.records.some(({ address }) => isSame(parseIp(address), ip)) ? 'yes' : 'no'
}

function isSame(found: IpBytes | null, ip: IpBytes): boolean {
  return found?.length === ip.length && found.every((byte, index) => byte === ip[index])
}
