// check_host() of RFC 7208 4: checks a client's address against a domain's record, and the records that it refers to.

import { type IpBytes, isInNetwork, parseIp, reverseParts, writeIp } from '../ip-network.ts'
import type { Lookup } from '../lookup.ts'
import { confirmNames } from '../reverse-dns.ts'
import { expandName, isName, literalName, type MacroString, type MacroValues, usesLetter } from './macro.ts'
import { type Directive, type Mechanism, parseSpfRecord, type SpfRecord, selectSpfRecords } from './record.ts'

export type SpfResult = Directive['result'] | 'none' | 'temperror' | 'permerror'

export interface SpfLimits {
  /** Terms that ask DNS, in all records together: include, a, mx, ptr, exists, redirect, and the first %{p}. */
  terms: number
  /** Terms that ask DNS for a name or a record that does not exist. */
  voids: number
  /** Hosts of one mx, and names of the client's address. */
  names: number
}

// RFC 7208 4.6.4: 10 terms, 2 void look-ups, and 10 names.
export const spfLimits: SpfLimits = { terms: 10, voids: 2, names: 10 }

/** The state of one check: its look-ups, its limits, and how much of them is used. */
export interface SpfCheck {
  readonly lookup: Lookup
  readonly limits: SpfLimits
  readonly ip: IpBytes
  readonly sender: { localPart: string; domain: string }
  readonly helo: string
  readonly hostname: string
  readonly at: Date
  terms: number
  voids: number
  /** The client's confirmed names, once they were asked for. */
  clientNames: Promise<readonly string[]> | null
}

export interface SpfOutcome {
  result: SpfResult
  /** In a sentence. */
  reason: string
  /** The term that matched. Null if none did. */
  mechanism: string | null
  /** The exp= target of a record that gives a fail, and the record's domain. Otherwise null. */
  explanation: { domain: string; pieces: MacroString } | null
}

/** The error that prevents a result. */
interface SpfError {
  result: 'temperror' | 'permerror'
  reason: string
}

type Tested = 'match' | 'mismatch' | SpfError

/** Evaluates the record of `domain`, an A-label name in lower case. */
export async function evaluateSpf(check: SpfCheck, domain: string): Promise<SpfOutcome> {
  const found = await findRecord(check.lookup, domain)
  if ('result' in found) return outcome(found)
  for (const directive of found.directives) {
    const testing = testMechanism(check, directive.mechanism, domain)
    // Most terms are networks, which need no look-up and no promise.
    const tested = testing instanceof Promise ? await testing : testing
    if (tested === 'match') return matched(check, directive, found, domain)
    if (tested !== 'mismatch') return outcome(tested)
  }
  // RFC 7208 6.1: redirect applies if no mechanism matches, at any position in the record.
  if (found.redirect !== null) return redirect(check, found.redirect, domain)
  return outcome({
    result: 'neutral',
    reason: `nothing in the SPF record of ${domain} matches ${client(check)}`,
  })
}

function outcome({ result, reason }: { result: SpfResult; reason: string }): SpfOutcome {
  return { result, reason, mechanism: null, explanation: null }
}

function client({ ip }: SpfCheck): string {
  return writeIp(ip)
}

function matched(
  check: SpfCheck,
  { result, text }: Directive,
  record: SpfRecord,
  domain: string,
): SpfOutcome {
  const { explanation } = record
  return {
    result,
    reason: `${client(check)} matches ${text} of ${domain}`,
    mechanism: text,
    explanation: result === 'fail' && explanation ? { domain, pieces: explanation } : null,
  }
}

async function findRecord(
  lookup: Lookup,
  domain: string,
): Promise<SpfRecord | SpfError | { result: 'none'; reason: string }> {
  // RFC 7208 4.3: only a name of several labels can have a record.
  if (!domain.includes('.') || !isName(domain))
    return { result: 'none', reason: 'there is no domain name that could have an SPF record' }
  const answer = await lookup('TXT', domain)
  if (answer.status === 'temporary') return unknown('TXT', domain, answer.reason)
  const texts = answer.status === 'ok' ? selectSpfRecords(answer.records) : []
  if (texts.length === 0) return { result: 'none', reason: `${domain} has no SPF record` }
  // RFC 7208 4.5: more than one record is an error, even if they are the same.
  if (texts.length > 1) return { result: 'permerror', reason: `${domain} has ${texts.length} SPF records` }
  const parsed = parseSpfRecord(texts[0]!)
  if (parsed.status === 'ok') return parsed.record
  return { result: 'permerror', reason: `the SPF record of ${domain} ${parsed.reason}` }
}

function unknown(type: string, name: string, reason: string): SpfError {
  return { result: 'temperror', reason: `${type} ${name}: ${reason}` }
}

async function redirect(check: SpfCheck, pieces: MacroString, domain: string): Promise<SpfOutcome> {
  const spent = spendTerm(check)
  if (spent) return outcome(spent)
  const target = await findTarget(check, pieces, domain)
  if (typeof target === 'object' && target !== null) return outcome(target)
  const redirected = target === null ? null : await evaluateSpf(check, target)
  // RFC 7208 6.1: if the target has no record or a malformed name, the result is "permerror" rather than "none".
  if (redirected !== null && redirected.result !== 'none') return redirected
  return outcome({
    result: 'permerror',
    reason: `the SPF record of ${domain} redirects to a name without one`,
  })
}

// RFC 7208 4.6.4: counts a term. "permerror" for more terms than the limit.
function spendTerm(check: SpfCheck): SpfError | null {
  if (++check.terms <= check.limits.terms) return null
  return { result: 'permerror', reason: `more than ${check.limits.terms} terms ask DNS` }
}

// RFC 7208 4.6.4: terms without an answer in DNS are limited too, because they can flood others with queries.
function spendVoid(check: SpfCheck): SpfError | 'mismatch' {
  if (++check.voids <= check.limits.voids) return 'mismatch'
  return { result: 'permerror', reason: `DNS has nothing for more than ${check.limits.voids} terms` }
}

function testMechanism(check: SpfCheck, mechanism: Mechanism, domain: string): Tested | Promise<Tested> {
  if (mechanism.name === 'all') return 'match'
  if ('network' in mechanism) {
    const { network, prefixBits } = mechanism
    return isInNetwork(check.ip, network, prefixBits) ? 'match' : 'mismatch'
  }
  return spendTerm(check) ?? testByDns(check, mechanism, domain)
}

async function testByDns(
  check: SpfCheck,
  mechanism: Exclude<Mechanism, { name: 'all' | 'ip4' | 'ip6' }>,
  domain: string,
): Promise<Tested> {
  const target = mechanism.target ? await findTarget(check, mechanism.target, domain) : domain
  if (target !== null && typeof target === 'object') return target
  if (mechanism.name === 'include') return testInclude(check, mechanism.target, target, domain)
  // RFC 7208 4.8: the meaning of an impossible name is undefined. Here it means a name that does not exist.
  if (target === null) return 'mismatch'
  if (mechanism.name === 'exists') return testExists(check, target)
  if (mechanism.name === 'ptr') return testPtr(check, target)
  const prefixBits = check.ip.length === 4 ? mechanism.prefixBits4 : mechanism.prefixBits6
  return mechanism.name === 'a' ? testA(check, target, prefixBits) : testMx(check, target, prefixBits)
}

// RFC 7208 5.2: a pass of the included record is a match. Its errors, or no record, are errors here.
async function testInclude(
  check: SpfCheck,
  pieces: MacroString,
  target: string | null,
  domain: string,
): Promise<Tested> {
  // RFC 8616 4: a term that contains a non-ASCII local part matches nothing.
  if (target === null && isBeyondAscii(check, pieces)) return 'mismatch'
  const included = target === null ? null : await evaluateSpf(check, target)
  if (included === null || included.result === 'none')
    return { result: 'permerror', reason: `the SPF record of ${domain} includes a name without one` }
  const { result, reason } = included
  if (result === 'temperror' || result === 'permerror') return { result, reason }
  return result === 'pass' ? 'match' : 'mismatch'
}

async function testA(check: SpfCheck, target: string, prefixBits: number): Promise<Tested> {
  const tested = await testAddresses(check, target, prefixBits)
  return tested === 'void' ? spendVoid(check) : tested
}

/** Whether the name has an address in the client's network. */
async function testAddresses(check: SpfCheck, name: string, prefixBits: number): Promise<Tested | 'void'> {
  const type = check.ip.length === 4 ? 'A' : 'AAAA'
  const answer = await check.lookup(type, name)
  if (answer.status === 'temporary') return unknown(type, name, answer.reason)
  if (answer.status !== 'ok') return 'void'
  return answer.records.some(({ address }) => {
    const found = parseIp(address)
    return found !== null && isInNetwork(check.ip, found, prefixBits)
  })
    ? 'match'
    : 'mismatch'
}

async function testMx(check: SpfCheck, target: string, prefixBits: number): Promise<Tested> {
  const answer = await check.lookup('MX', target)
  if (answer.status === 'temporary') return unknown('MX', target, answer.reason)
  if (answer.status !== 'ok') return spendVoid(check)
  // RFC 7208 4.6.4: more than 10 hosts are an error.
  if (answer.records.length > check.limits.names)
    return { result: 'permerror', reason: `${target} has more than ${check.limits.names} mail hosts` }
  const hosts = answer.records.map(({ exchange }) => exchange.replace(/\.$/, '').toLowerCase()).filter(isName)
  // All at once: one after the other they would exceed the deadline if DNS is slow.
  const tested = await Promise.all(hosts.map((host) => testAddresses(check, host, prefixBits)))
  const decisive = tested.find((one) => one !== 'mismatch' && one !== 'void')
  if (decisive !== undefined) return decisive as Tested
  return tested.includes('void') ? spendVoid(check) : 'mismatch'
}

async function testExists(check: SpfCheck, target: string): Promise<Tested> {
  // RFC 7208 5.7: the type is A, also for IPv6 clients.
  const answer = await check.lookup('A', target)
  if (answer.status === 'temporary') return unknown('A', target, answer.reason)
  return answer.status === 'ok' ? 'match' : spendVoid(check)
}

async function testPtr(check: SpfCheck, target: string): Promise<Tested> {
  // RFC 7208 5.5: on a DNS error the term does not match. Names beyond the tenth are ignored.
  const names = await namesOfClient(check)
  return names.some((name) => name === target || name.endsWith(`.${target}`)) ? 'match' : 'mismatch'
}

/** Asks once per check, for a ptr or a %{p}. */
export function namesOfClient(check: SpfCheck): Promise<readonly string[]> {
  check.clientNames ??= confirmNames(check.lookup, check.ip, check.limits.names).then(({ names }) => names)
  return check.clientNames
}

/** The name that a term asks for with this sender. Null if DNS could not have it. */
async function findTarget(
  check: SpfCheck,
  pieces: MacroString,
  domain: string,
): Promise<string | null | SpfError> {
  const literal = literalName(pieces)
  if (literal !== undefined) return literal
  const asksForNames = usesLetter(pieces, 'p')
  // RFC 7208 4.6.4: %{p} counts as a term that asks DNS. Its answer is kept for the rest of the check.
  const spent = asksForNames && check.clientNames === null ? spendTerm(check) : null
  if (spent) return spent
  // RFC 8616 4: DNS has no name for a non-ASCII local part.
  if (isBeyondAscii(check, pieces)) return null
  return expandName(pieces, await macroValues(check, pieces, domain))
}

function isBeyondAscii({ sender }: SpfCheck, pieces: MacroString): boolean {
  return /[^\x00-\x7f]/.test(sender.localPart) && usesLetter(pieces, 'sl')
}

/** The values of macros in a record of `domain`. Asks for the client's names only if `pieces` need them. */
export async function macroValues(
  check: SpfCheck,
  pieces: MacroString,
  domain: string,
): Promise<MacroValues> {
  const { ip, sender, helo, hostname, at } = check
  const names = usesLetter(pieces, 'p') ? await namesOfClient(check) : []
  return {
    s: `${sender.localPart}@${sender.domain}`,
    l: sender.localPart,
    o: sender.domain,
    d: domain,
    // RFC 7208 7.3: IPv6 addresses are written digit by digit, in capitals as in the published suite.
    i: reverseParts(ip).join('.').toUpperCase(),
    p: chooseName(names, domain),
    v: ip.length === 4 ? 'in-addr' : 'ip6',
    h: helo,
    c: writeIp(ip),
    r: hostname,
    t: String(Math.floor(at.getTime() / 1000)),
  }
}

// RFC 7208 7.3: the domain itself, else a name below it, else any of them, else "unknown".
function chooseName(names: readonly string[], domain: string): string {
  const below = names.find((name) => name.endsWith(`.${domain}`))
  return names.find((name) => name === domain) ?? below ?? names[0] ?? 'unknown'
}
