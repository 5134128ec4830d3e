// The values that settings take, each read from text; null where the text is none.
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import ipaddr from 'ipaddr.js'
import { parseDuration } from '../base/duration.ts'
import { defaultLimits, isLimit } from '../flow/accounts/organization.ts'
import type { RelayTarget } from '../flow/delivering/next-hop.ts'
import { parseDomain, parseEmail } from '../mail/address.ts'
import type { Blocklist } from '../mailauth/blocklists.ts'
import type { ClamdAddress } from '../scan/clamd.ts'
import type { RspamdAddress } from '../scan/rspamd.ts'
import type { Limits } from '../store/organizations.ts'
import { isLoopback } from '../webhook/address-guard.ts'

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

export function string(text: string): string {
  return text
}

export function domain(text: string): string | null {
  return parseDomain(text)
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
  return text.startsWith('https://') && URL.canParse(text) ? text : null
}

export function boolean(text: string): boolean | null {
  return text === 'true' ? true : text === 'false' ? false : null
}

export function integer(min: number, max: number) {
  return (text: string) =>
    /^\d{1,12}$/.test(text) && Number(text) >= min && Number(text) <= max ? Number(text) : null
}

const dayMs = 86_400_000

/** How long things are kept, in milliseconds; null: for good. */
export interface Retention {
  submissions: number | null
  messages: number | null
  audit: number | null
  'operator-mail': number
}

export const defaultRetention: Retention = {
  ...{ submissions: null, messages: null, audit: null, 'operator-mail': 30 * dayMs },
}

/**
 * The least that may be set. Idempotency keys answer for 30 days, so what they answer with is kept at least as long; calls
 * of webhooks are repeated for days, and read the message that they tell of.
 */
const leastKept: Record<keyof Retention, number> = {
  ...{ submissions: 30 * dayMs, messages: 7 * dayMs, audit: 30 * dayMs, 'operator-mail': dayMs },
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
  const isEnough = ([kind, ms]: [string, number]) => ms >= leastKept[kind as keyof Retention]
  return Object.entries(periods).every(isEnough) ? { ...defaultRetention, ...periods } : null
}

export function port(text: string): number | null {
  return integer(0, 65_535)(text)
}

export function oneOf<Value extends string>(...values: Value[]) {
  return (text: string) => values.find((value) => value === text) ?? null
}

export function list<Value>(parse: (text: string) => Value | null) {
  return (text: string): Value[] | null => {
    const values = text.split(',').map((item) => parse(item.trim()))
    return values.includes(null) ? null : (values as Value[])
  }
}

export function address(text: string): ListenAddress | null {
  const match = /^(?:\[([0-9a-f:.]+)\]|([^:[\]]+)):(\d{1,5})$/i.exec(text)
  const host = match?.[1] ?? match?.[2]
  const number = port(match?.[3] ?? '')
  return host && number !== null ? { host, port: number } : null
}

/** `host:port`, or the path of a socket. */
export function clamdAddress(text: string): ClamdAddress | null {
  return text.startsWith('/') ? { path: text } : address(text)
}

/** Rspamd's scanner, or its controller with the password for it. */
export function rspamdUrl(text: string): RspamdAddress | null {
  const url = /^https?:\/\//.test(text) ? URL.parse(text) : null
  // An unescaped `/`, `?` or `#` in a password ends the host before the real one: what comes behind it is no path.
  if (!url?.hostname || url.username !== '' || !/^\/?$/.test(url.pathname + url.search + url.hash))
    return null
  const password = decoded(url.password)
  return password === null ? null : { origin: url.origin, password: password || null }
}

export function resolver(text: string): string | null {
  if (isIP(text)) return text
  const parsed = address(text)
  return parsed && isIP(parsed.host) && parsed.port > 0 ? text : null
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
  const zone = parseDomain(text.replace(/^tell:/, ''))
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
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text)) return null
  return hasPlainUser(new URL(text)) ? text : null
}

/** A file's name, and not what it holds: 32 bytes in hex or Base64, or a PEM. */
export function fileName(text: string): string | null {
  return /^([0-9a-f]{64}|[A-Za-z0-9+/]{43}=)$|-----BEGIN|\n/i.test(text) ? null : text
}

export function webUrl(text: string): string | null {
  return /^https?:\/\//.test(text) && URL.canParse(text) ? text.replace(/\/+$/, '') : null
}

/** Its tokens decide who gets in, so they do not cross a network in the clear. */
export function oidcIssuer(text: string): string | null {
  if (!URL.canParse(text)) return null
  const { protocol, hostname, search, hash, username } = new URL(text)
  if (search || hash || username) return null
  const isSafe =
    protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname.replace(/^\[|\]$/g, '')))
  return isSafe ? text : null
}

export function fileUrl(text: string): string | null {
  return text.startsWith('file:') ? resolve(text.replace(/^file:(?:\/\/(?=\/))?/, '')) : null
}

/** A smarthost; with a password its TLS is required and verified, but on this machine, where nobody is in between. */
export function relayUrl(text: string): RelayTarget | null {
  const url = /^smtps?:\/\//.test(text) ? URL.parse(text) : null
  // An unescaped `/`, `?` or `#` in a password ends the host before the real one: what comes behind it is no path.
  if (!url?.hostname || !/^\/?$/.test(url.pathname + url.search + url.hash)) return null
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const implicit = url.protocol === 'smtps:'
  const auth = credentialsIn(url)
  if (auth === undefined) return null
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
