// The values that settings take, each read from text; null where the text is none.
import { isIP, isIPv4, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'
import { parseDuration } from '../base/duration.ts'
import { defaultLimits, isLimit } from '../flow/accounts/organization.ts'
import type { RelayTarget } from '../flow/delivering/next-hop.ts'
import type { OutboundAddresses } from '../flow/delivering/outbound.ts'
import { parseDomain, parseEmail } from '../mail/address.ts'
import type { Blocklist } from '../mailauth/blocklists.ts'
import type { ClamdAddress } from '../scan/clamd.ts'
import type { RspamdAddress } from '../scan/rspamd.ts'
import type { Limits } from '../store/accounts/organizations.ts'
import { isLoopback } from '../webhook/address-guard.ts'
import { SettingError } from './setting-reader.ts'

export interface ListenAddress {
  host: string
  port: number
}

/** The limits that `text`, a JSON object, changes; null where a name or a value is none. */
function parseLimits(text: string): Partial<Limits> | null {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
    return Object.entries(value).every(([name, limit]) => isLimit(name, limit)) ? value : null
  } catch {
    return null // not JSON
  }
}

export function limits(text: string): Limits | null {
  const changed = parseLimits(text)
  return changed && { ...defaultLimits, ...changed }
}

/** Words for people or a provider, of at most `most` characters. */
export function words(most: number) {
  return (text: string) => (text.length <= most ? text : null)
}

/** Linux takes 4,095 bytes. */
const maxPathBytes = 4_095

export function path(text: string): string | null {
  return Buffer.byteLength(text) <= maxPathBytes ? text : null
}

/** A name that the world can look up: no single label is. */
export function hostName(text: string): string | null {
  const name = parseDomain(text)
  return name?.includes('.') ? name : null
}

/** In lower case, as inboxes have theirs. */
export function inboxAddress(text: string): string | null {
  return parseEmail(text)?.email.toLowerCase() ?? null
}

/** In the form that a `mailto:` takes. */
export function emailAddress(text: string): string | null {
  const email = parseEmail(text)?.email ?? ''
  return /^[\w.+-]+@[a-z0-9.-]+$/i.test(email) ? email : null
}

/** Only by https: what an authority says decides what is shown to the world. */
export function acmeDirectory(text: string): string | null {
  return text.startsWith('https://') && text.length <= maxUrl && URL.canParse(text) ? text : null
}

export function boolean(text: string): boolean | null {
  return text === 'true' ? true : text === 'false' ? false : null
}

export function integer(min: number, max: number) {
  return (text: string) =>
    /^\d{1,12}$/.test(text) && Number(text) >= min && Number(text) <= max ? Number(text) : null
}

const dayMs = 86_400_000

/** A duration within bounds: past some, dates and timers are none any more. */
export function duration(minMs: number, maxDays: number) {
  return (text: string): number | null => {
    const ms = parseDuration(text)
    return ms !== null && ms >= minMs && ms <= maxDays * dayMs ? ms : null
  }
}

/** Between two attempts. */
export const wait = duration(1, 7)

const maxDrainMs = 60_000

/** Between the first 503 of `/readyz` and the first listener that closes. */
export function drainDelay(text: string): number | null {
  const ms = parseDuration(text)
  return ms !== null && ms <= maxDrainMs ? ms : null
}

const maxKeptMs = 36_500 * dayMs

/** How long things are kept, in milliseconds; null: for good, and `sent-content` for as long as mail is tried. */
export interface Retention {
  submissions: number | null
  messages: number | null
  audit: number | null
  'sent-content': number | null
  'operator-mail': number
}

export const defaultRetention: Retention = {
  submissions: null,
  messages: null,
  audit: null,
  'sent-content': null,
  'operator-mail': 30 * dayMs,
}

/** How long the content of a send without an inbox is kept, from its acceptance on: never longer than its submission. */
export function sentContentMs(settings: { retention: Retention; retryLifetimeMs: number }): number {
  const { retention, retryLifetimeMs } = settings
  return Math.min(retention['sent-content'] ?? retryLifetimeMs, retention.submissions ?? maxKeptMs)
}

/**
 * The least that may be set. Idempotency keys answer for 30 days, so what they answer with is kept at least as long; calls
 * of webhooks are repeated for days, and read the message that they tell of.
 */
const leastKept: Record<keyof Retention, number> = {
  submissions: 30 * dayMs,
  messages: 7 * dayMs,
  audit: 30 * dayMs,
  'sent-content': dayMs,
  'operator-mail': dayMs,
}

/** `365d`, for submissions and messages, or `submissions=90d,messages=365d`, or both, of which what is named counts. */
export function retention(text: string): Retention | null {
  const given = new Map<string, number>()
  for (const item of text.split(',')) {
    const [, kind = '', duration = ''] = /^\s*(?:([a-z-]+)\s*=)?(.*)$/.exec(item) ?? []
    const ms = parseDuration(duration)
    if (ms === null || given.has(kind) || (kind !== '' && !Object.hasOwn(leastKept, kind))) return null
    given.set(kind, ms)
  }
  const all = given.get('')
  const { '': _, ...named } = Object.fromEntries(given)
  const periods = { ...(all !== undefined && { submissions: all, messages: all }), ...named }
  const isEnough = ([kind, ms]: [string, number]) =>
    ms >= leastKept[kind as keyof Retention] && ms <= maxKeptMs
  return Object.entries(periods).every(isEnough) ? { ...defaultRetention, ...periods } : null
}

export function port(text: string): number | null {
  return integer(0, 65_535)(text)
}

export function oneOf<Value extends string>(...values: Value[]) {
  return (text: string) => values.find((value) => value === text) ?? null
}

/** Several, separated by commas; null where there are more than `most`. */
export function list<Value>(parse: (text: string) => Value | null, most = 100) {
  return (text: string): Value[] | null => {
    const items = text.split(',')
    if (items.length > most) return null
    const values = items.map((item) => parse(item.trim()))
    return values.includes(null) ? null : (values as Value[])
  }
}

/** Ranges of addresses that are trusted; a provider's proxies may have hundreds. None is all addresses: anybody could claim any. */
export const cidrs = list((text) => {
  const range = cidr(text)
  return range !== null && ipaddr.parseCIDR(range)[1] > 0 ? range : null
}, 1_000)

export function address(text: string): ListenAddress | null {
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]{1,253})):(\d{1,5})$/i.exec(text)
  const host = match?.[1] ?? match?.[2]
  const number = port(match?.[3] ?? '')
  if (match?.[1] && !isIPv6(match[1])) return null
  return host && number !== null ? { host, port: number } : null
}

/** An address that is spoken to: port 0 is none. */
function peer(text: string): ListenAddress | null {
  const found = address(text)
  return found && found.port > 0 ? found : null
}

/** Socket paths end there on Linux. */
const maxSocketPath = 107

/** `host:port`, or the path of a socket. */
export function clamdAddress(text: string): ClamdAddress | null {
  if (!text.startsWith('/')) return peer(text)
  return Buffer.byteLength(text) <= maxSocketPath ? { path: text } : null
}

/** One address of this machine, or one of each family; null where a socket cannot be bound to it. */
export function outboundAddresses(text: string): OutboundAddresses | null {
  const addresses = list((item) => (isIP(item) && !item.includes('%') ? item : null), 2)(text)
  if (!addresses) return null
  const [ipv4, ipv6] = [addresses.filter(isIPv4), addresses.filter(isIPv6)]
  const isBindable = (ip: string) =>
    !['unspecified', 'multicast', 'broadcast', 'ipv4Mapped'].includes(ipaddr.parse(ip).range())
  if (ipv4.length > 1 || ipv6.length > 1 || !addresses.every(isBindable)) return null
  return { ipv4: ipv4[0] ?? null, ipv6: ipv6[0] ?? null }
}

/** Rspamd's scanner, or its controller with the password for it. */
export function rspamdUrl(text: string): RspamdAddress | null {
  const url = /^https?:\/\//.test(text) ? URL.parse(text) : null
  // An unescaped `/`, `?` or `#` in a password ends the host before the real one: what comes behind it is no path.
  if (!url?.hostname || url.username !== '' || !/^\/?$/.test(url.pathname + url.search + url.hash))
    return null
  if (url.port === '0') return null
  const password = decoded(url.password)
  return password === null ? null : { origin: url.origin, password: password || null }
}

export function resolver(text: string): string | null {
  if (isIP(text)) return text
  const parsed = peer(text)
  return parsed && isIP(parsed.host) ? text : null
}

const maxLists = 8
/** An IPv6 address takes 64 characters before the zone, and a name has 253 at most. */
const maxZoneLength = 189

/** `zone` or `tell:zone`, several separated by commas, each once. */
export function blocklists(text: string): Blocklist[] | null {
  const lists = list(blocklist)(text)
  const zones = new Set(lists?.map(({ zone }) => zone))
  return lists && lists.length <= maxLists && zones.size === lists.length ? lists : null
}

function blocklist(text: string): Blocklist | null {
  const zone = hostName(text.replace(/^tell:/, ''))
  if (zone === null || zone.length > maxZoneLength) return null
  return { zone, action: text.startsWith('tell:') ? 'tell' : 'refuse' }
}

export function cidr(text: string): string | null {
  return ipaddr.isValidCIDR(text) ? text : isIP(text) ? `${text}/${isIP(text) === 4 ? 32 : 128}` : null
}

/** Whether a URL's user, password and path can be read, and nothing stands behind its host that belongs to them. */
function hasPlainUser(url: URL): boolean {
  try {
    decodeURIComponent(url.username + url.password + url.pathname)
  } catch {
    return false // a % that begins no character
  }
  return url.hash === '' && !/@/.test(url.pathname + url.search)
}

export function databaseUrl(text: string): string | null {
  // Security: the hosts are not repeated, for a password that is not written as a URL wants it may be among them.
  if (/^postgres(?:ql)?:\/\/(?:[^/]*@)?[^/@]*,[^/@]*(?:[/?#]|$)|[?&]host=[^&]*(?:,|%2c)/i.test(text))
    throw new SettingError(
      'POSTHORN_DATABASE_URL names several hosts, and may name one: write one address that follows the primary, such as that of a proxy (docs/operating.md, "A database that fails over")',
    )
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text)) return null
  return hasPlainUser(new URL(text)) ? text : null
}

/** A file's name, and not what it holds: 32 bytes in hex or Base64, or a PEM. */
export function fileName(text: string): string | null {
  return /^([0-9a-f]{64}|[A-Za-z0-9+/]{43}=)$|-----BEGIN|\n/i.test(text) ? null : path(text)
}

/** Paths are put behind it. */
export function webUrl(text: string): string | null {
  const url = /^https?:\/\//.test(text) && text.length <= maxUrl ? URL.parse(text) : null
  return url && url.search + url.hash + url.username === '' ? text.replace(/\/+$/, '') : null
}

const maxUrl = 2_048

/** Its tokens decide who gets in, so they do not cross a network in the clear. */
export function oidcIssuer(text: string): string | null {
  if (!URL.canParse(text) || text.length > maxUrl) return null
  const { protocol, hostname, search, hash, username } = new URL(text)
  if (search || hash || username) return null
  const isSafe =
    protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname.replace(/^\[|\]$/g, '')))
  return isSafe ? text : null
}

/** The folder; a host's, which two slashes begin, is none of this machine. */
export function fileUrl(text: string): string | null {
  const folder = /^file:(?:\/\/(?=\/))?(.+)$/.exec(text)?.[1]
  return folder && !folder.startsWith('//') && path(folder) ? folder : null
}

/** A smarthost; with a password its TLS is required and verified, but on this machine, where nobody is in between. */
export function relayUrl(text: string): RelayTarget | null {
  const url = /^smtps?:\/\//.test(text) ? URL.parse(text) : null
  // An unescaped `/`, `?` or `#` in a password ends the host before the real one: what comes behind it is no path.
  if (!url?.hostname || !/^\/?$/.test(url.pathname + url.search + url.hash)) return null
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const implicit = url.protocol === 'smtps:'
  const auth = credentialsIn(url)
  if (auth === undefined || url.port === '0') return null
  const shared = { host, port: Number(url.port || (implicit ? 465 : 25)), auth }
  if (implicit) return { ...shared, tls: 'implicit', tlsVerify: 'host' }
  if (auth && !isLoopback(host)) return { ...shared, tls: 'required', tlsVerify: 'host' }
  return { ...shared, tls: 'opportunistic', tlsVerify: 'none' }
}

/** Null where a % begins no escape. */
function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null // not an escape
  }
}

/** Null where there are none; undefined where they cannot be read. */
function credentialsIn({ username, password }: URL): RelayTarget['auth'] | undefined {
  if (username === '') return password === '' ? null : undefined
  const [user, word] = [decoded(username), decoded(password)]
  return user === null || word === null ? undefined : { user, password: word }
}

/** The smarthost with what an operator wants of its certificate; TLS is required then. */
export function withRelayTls(relay: RelayTarget, certificate: 'verified' | 'unverified'): RelayTarget {
  const tls = relay.tls === 'implicit' ? 'implicit' : 'required'
  return { ...relay, tls, tlsVerify: certificate === 'verified' ? 'host' : 'none' }
}

/** `127.0.0.1:25` or `[::1]:25`. */
export function formatAddress({ host, port }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** A listener on every address is reached on this machine's own. */
export function reachable({ host, port }: ListenAddress): ListenAddress {
  const own: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
  return { host: own[host] ?? host, port }
}
