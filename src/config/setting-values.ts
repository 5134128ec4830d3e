// Parsers for the values of settings. Each reads a text, and returns null if the text is invalid.
import { isIP, isIPv4, isIPv6 } from 'node:net'
import { availableParallelism } from 'node:os'
import ipaddr from 'ipaddr.js'
import { parseDuration } from '../base/duration.ts'
import { parseS3Address, type S3Address } from '../blobs/s3/s3-address.ts'
import { defaultLimits, isLimit } from '../flow/accounts/organization.ts'
import type { RelayTarget } from '../flow/delivering/next-hop.ts'
import type { OutboundAddresses } from '../flow/delivering/outbound.ts'
import { parseDomain, parseEmail } from '../mail/address.ts'
import type { Blocklist } from '../mailauth/blocklists.ts'
import { urlsOfHosts } from '../postgres/primary.ts'
import type { ClamdAddress } from '../scan/clamd.ts'
import type { RspamdAddress } from '../scan/rspamd.ts'
import type { Limits } from '../store/accounts/organizations.ts'
import { isLoopback } from '../webhook/address-guard.ts'
import { SettingError } from './setting-reader.ts'

export interface ListenAddress {
  host: string
  port: number
}

/** Returns the limits that `text`, a JSON object, changes; null if a name or a value is invalid. */
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

/** Any text of up to `most` characters, for people or a provider. */
export function words(most: number) {
  return (text: string) => (text.length <= most ? text : null)
}

/** Linux's limit is 4,095 bytes. */
const maxPathBytes = 4_095

export function path(text: string): string | null {
  return Buffer.byteLength(text) <= maxPathBytes ? text : null
}

/** A name for public DNS, so it has at least two labels. */
export function hostName(text: string): string | null {
  const name = parseDomain(text)
  return name?.includes('.') ? name : null
}

/** In lower case, like the addresses of inboxes. */
export function inboxAddress(text: string): string | null {
  return parseEmail(text)?.email.toLowerCase() ?? null
}

/** In the form that a `mailto:` accepts. */
export function emailAddress(text: string): string | null {
  const email = parseEmail(text)?.email ?? ''
  return /^[\w.+-]+@[a-z0-9.-]+$/i.test(email) ? email : null
}

/** Only https: the authority's answers decide what we show to the world. */
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

/** More would wait for PostgreSQL, which needs cores too. The embedded one has connections for this many. */
export const maxWorkers = 16

/** `auto`: one worker per core that this process may use. */
export function workerCount(text: string): number | null {
  return text === 'auto' ? Math.min(availableParallelism(), maxWorkers) : integer(1, maxWorkers)(text)
}

const dayMs = 86_400_000

/** A duration within limits: dates and timers do not work beyond some. */
export function duration(minMs: number, maxDays: number) {
  return (text: string): number | null => {
    const ms = parseDuration(text)
    return ms !== null && ms >= minMs && ms <= maxDays * dayMs ? ms : null
  }
}

/** The wait between two attempts. */
export const wait = duration(1, 7)

const maxDrainMs = 60_000

/** The time between the first 503 of `/readyz` and closing the first listener. */
export function drainDelay(text: string): number | null {
  const ms = parseDuration(text)
  return ms !== null && ms <= maxDrainMs ? ms : null
}

const maxKeptMs = 36_500 * dayMs

/** Retention in milliseconds. Null keeps data for good, and `sent-content` as long as mail is retried. */
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

/** How long the content of a send without an inbox is kept after acceptance: never longer than its submission. */
export function sentContentMs(settings: { retention: Retention; retryLifetimeMs: number }): number {
  const { retention, retryLifetimeMs } = settings
  return Math.min(retention['sent-content'] ?? retryLifetimeMs, retention.submissions ?? maxKeptMs)
}

/**
 * The minimum periods. Idempotency keys are valid for 30 days, so their results must be kept at least as long. Webhook
 * calls are retried for days, and read their message.
 */
const leastKept: Record<keyof Retention, number> = {
  submissions: 30 * dayMs,
  messages: 7 * dayMs,
  audit: 30 * dayMs,
  'sent-content': dayMs,
  'operator-mail': dayMs,
}

/** `365d` for submissions and messages, or `submissions=90d,messages=365d`, or both; a named period takes precedence. */
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

/** Values separated by commas; null if there are more than `most`. */
export function list<Value>(parse: (text: string) => Value | null, most = 100) {
  return (text: string): Value[] | null => {
    const items = text.split(',')
    if (items.length > most) return null
    const values = items.map((item) => parse(item.trim()))
    return values.includes(null) ? null : (values as Value[])
  }
}

/** Trusted ranges. A provider's proxies may have hundreds. All addresses is refused: anyone could then claim any address. */
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

/** An address to connect to, so port 0 is invalid. */
function peer(text: string): ListenAddress | null {
  const found = address(text)
  return found && found.port > 0 ? found : null
}

/** The longest socket path on Linux. */
const maxSocketPath = 107

/** `host:port`, or the path of a socket. */
export function clamdAddress(text: string): ClamdAddress | null {
  if (!text.startsWith('/')) return peer(text)
  return Buffer.byteLength(text) <= maxSocketPath ? { path: text } : null
}

/** One address of this machine, or one of each family; null if a socket cannot be bound to it. */
export function outboundAddresses(text: string): OutboundAddresses | null {
  // In one form, because addresses are compared as text.
  const one = (item: string) => (isIP(item) && !item.includes('%') ? ipaddr.parse(item).toString() : null)
  const addresses = list(one, 2)(text)
  if (!addresses) return null
  const [ipv4, ipv6] = [addresses.filter(isIPv4), addresses.filter(isIPv6)]
  const isBindable = (ip: string) =>
    !['unspecified', 'multicast', 'broadcast', 'ipv4Mapped'].includes(ipaddr.parse(ip).range())
  if (ipv4.length > 1 || ipv6.length > 1 || !addresses.every(isBindable)) return null
  return { ipv4: ipv4[0] ?? null, ipv6: ipv6[0] ?? null }
}

/** The URL of Rspamd's scanner, or of its controller with the password. */
export function rspamdUrl(text: string): RspamdAddress | null {
  const url = /^https?:\/\//.test(text) ? URL.parse(text) : null
  // An unescaped `/`, `?` or `#` in a password ends the host too early. The rest then looks like a path, so we allow none.
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
/** An IPv6 address takes 64 characters before the zone, and a name has up to 253. */
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

/** Returns whether a URL's user, password and path can be decoded, and no part of the password ended up after its host. */
function hasPlainUser(url: URL): boolean {
  try {
    decodeURIComponent(url.username + url.password + url.pathname)
  } catch {
    return false // a % without an escape
  }
  return url.hash === '' && !/@/.test(url.pathname + url.search)
}

export function databaseUrl(text: string): string | null {
  if (/[?&](?:host|port)=[^&]*(?:,|%2c)/i.test(text))
    throw new SettingError(
      'POSTHORN_DATABASE_URL names several hosts in a parameter: write them before the path, as in postgres://user@a:5432,b:5432/name',
    )
  if (!/^postgres(ql)?:\/\//.test(text)) return null
  const urls = urlsOfHosts(text).map((url) => URL.parse(url))
  if (!urls.every((url) => url !== null && hasPlainUser(url))) return null
  if (urls.length > 1) requireHosts(urls as URL[])
  return text
}

/** Security: the messages do not repeat the hosts, because a badly escaped password may look like a host. */
function requireHosts(urls: URL[]): void {
  const { searchParams } = urls[0]!
  if (searchParams.has('host') || searchParams.has('port'))
    throw new SettingError(
      'POSTHORN_DATABASE_URL names several hosts, and one more in a parameter: remove host and port from its parameters',
    )
  if (urls.some(({ hostname }) => hostname === ''))
    throw new SettingError(
      'POSTHORN_DATABASE_URL has an empty host: write a name or an address between commas',
    )
  const wanted = searchParams.get('target_session_attrs') ?? 'read-write'
  if (wanted !== 'read-write' && wanted !== 'primary')
    throw new SettingError(
      'POSTHORN_DATABASE_URL names several hosts, and Posthorn uses only the primary: set target_session_attrs=read-write',
    )
}

/** The name of a file. Refuses the content of a key file: 32 bytes in hex or Base64, or a PEM. */
export function fileName(text: string): string | null {
  return /^([0-9a-f]{64}|[A-Za-z0-9+/]{43}=)$|-----BEGIN|\n/i.test(text) ? null : path(text)
}

/** A base URL: paths are appended to it. */
export function webUrl(text: string): string | null {
  const url = /^https?:\/\//.test(text) && text.length <= maxUrl ? URL.parse(text) : null
  return url && url.search + url.hash + url.username === '' ? text.replace(/\/+$/, '') : null
}

const maxUrl = 2_048

/** Only https, or a loopback address: the provider's tokens decide who may sign in, so they must be encrypted. */
export function oidcIssuer(text: string): string | null {
  if (!URL.canParse(text) || text.length > maxUrl) return null
  const { protocol, hostname, search, hash, username } = new URL(text)
  if (search || hash || username) return null
  const isSafe =
    protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname.replace(/^\[|\]$/g, '')))
  return isSafe ? text : null
}

/** Returns the folder. Two slashes begin a host name, which is refused: the folder must be on this machine. */
/** A folder, or a bucket on S3. */
export function blobUrl(text: string): { folder: string } | { s3: S3Address } | null {
  const folder = fileUrl(text)
  if (folder !== null) return { folder }
  const s3 = parseS3Address(text)
  return s3 && { s3 }
}

function fileUrl(text: string): string | null {
  const folder = /^file:(?:\/\/(?=\/))?(.+)$/.exec(text)?.[1]
  return folder && !folder.startsWith('//') && path(folder) ? folder : null
}

/** A smarthost. A password requires verified TLS, except on this machine, where no one is in between. */
export function relayUrl(text: string): RelayTarget | null {
  const url = /^smtps?:\/\//.test(text) ? URL.parse(text) : null
  // An unescaped `/`, `?` or `#` in a password ends the host too early. The rest then looks like a path, so we allow none.
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

/** Returns the decoded text; null if a % begins no escape. */
function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null // not an escape
  }
}

/** Null if there are none; undefined if they cannot be decoded. */
function credentialsIn({ username, password }: URL): RelayTarget['auth'] | undefined {
  if (username === '') return password === '' ? null : undefined
  const [user, word] = [decoded(username), decoded(password)]
  return user === null || word === null ? undefined : { user, password: word }
}

/** Returns the smarthost with the operator's choice for its certificate. TLS then becomes required. */
export function withRelayTls(relay: RelayTarget, certificate: 'verified' | 'unverified'): RelayTarget {
  const tls = relay.tls === 'implicit' ? 'implicit' : 'required'
  return { ...relay, tls, tlsVerify: certificate === 'verified' ? 'host' : 'none' }
}

/** Returns `127.0.0.1:25` or `[::1]:25`. */
export function formatAddress({ host, port }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** Returns an address to reach the listener from this machine, even if it listens on every address. */
export function reachable({ host, port }: ListenAddress): ListenAddress {
  const own: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
  return { host: own[host] ?? host, port }
}
