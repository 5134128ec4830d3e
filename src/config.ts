// Every setting, read and checked once; a wrong one stops the start with one line that says what to write instead.
import { existsSync, readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import ipaddr from 'ipaddr.js'
import { parseDuration } from './base/duration.ts'
import type { LogFormat } from './base/log.ts'
import type { RelayTarget } from './flow/next-hop.ts'
import { defaultLimits } from './flow/organization.ts'
import type { DeliveryMode } from './flow/routes.ts'
import { parseDomain } from './mail/address.ts'
import type { Limits } from './store/organizations.ts'

export type Role = 'api' | 'mx' | 'delivery' | 'jobs'

/** The roles that exist so far, in the order in which they start. */
export const roles: readonly Role[] = ['api', 'mx', 'delivery', 'jobs']

export interface ListenAddress {
  host: string
  port: number
}

export interface Settings {
  dataDir: string
  databaseUrl: string | null
  blobFolder: string
  http: ListenAddress
  publicUrl: string | null
  trustedProxies: string[]
  operator: ListenAddress
  smtp: ListenAddress
  smtpTls: { certFile: string; keyFile: string } | null
  mailHost: string
  isDevelopment: boolean
  managedDomain: string
  dnsServers: string[]
  delivery: DeliveryMode
  relay: RelayTarget | null
  mxPort: number
  allowPrivateNetworks: boolean
  smtpTrusted: string[]
  smtpMaxSizeBytes: number
  retryScheduleMs: number[]
  retryLifetimeMs: number
  defaultLimits: Limits
  secretKeyFile: string
  roles: Role[]
  logLevel: string
  logFormat: LogFormat
}

/** A setting that cannot be used; the message is the one line to print. */
export class SettingError extends Error {}

type Environment = Record<string, string | undefined>

/** The process's environment over `.env` in the current folder. */
export function readEnvironment(folder: string, environment: Environment): Environment {
  const file = resolve(folder, '.env')
  return existsSync(file) ? { ...parseEnv(readFileSync(file, 'utf8')), ...environment } : environment
}

/** Reads every setting; throws a SettingError at the first that cannot be used. */
export function readSettings(environment: Environment): Settings {
  const read = <Value>(
    name: string,
    fallback: Value,
    parse: (text: string) => Value | null,
    example: string,
  ): Value => {
    const text = environment[name]?.trim()
    if (text === undefined || text === '') return fallback
    const value = parse(text)
    if (value === null) throw new SettingError(`${name}="${text}" cannot be used: write ${example}`)
    return value
  }
  refuseUnknown(environment)
  const dataDir = resolve(read('POSTHORN_DATA_DIR', './data', string, 'a folder, such as ./data'))
  const mailHost = read<string | null>(
    'POSTHORN_MAIL_HOST',
    null,
    domain,
    'a host name, such as mx.example.com',
  )
  const delivery = read<DeliveryMode>(
    'POSTHORN_DELIVERY',
    mailHost ? 'direct' : 'capture',
    oneOf<DeliveryMode>('direct', 'relay', 'capture'),
    'direct, relay or capture',
  )
  const relay = read('POSTHORN_RELAY_URL', null, relayUrl, 'smtp://user:password@host:port, or smtps://…')
  if (delivery === 'relay' && !relay)
    throw new SettingError('POSTHORN_DELIVERY=relay needs POSTHORN_RELAY_URL: write smtp://host:port')
  return {
    dataDir,
    databaseUrl: read(
      'POSTHORN_DATABASE_URL',
      null,
      databaseUrl,
      'postgres://user:password@host:5432/database',
    ),
    blobFolder: read(
      'POSTHORN_BLOB_URL',
      resolve(dataDir, 'blobs'),
      fileUrl,
      'file:/a/folder (s3:// is not there yet)',
    ),
    http: read('POSTHORN_HTTP', { host: '127.0.0.1', port: 8025 }, address, '127.0.0.1:8025'),
    publicUrl: read('POSTHORN_PUBLIC_URL', null, webUrl, 'https://mail.example.com'),
    trustedProxies: read(
      'POSTHORN_TRUSTED_PROXIES',
      [],
      list(cidr),
      '10.0.0.0/8, or several separated by commas',
    ),
    operator: read('POSTHORN_OPERATOR', { host: '127.0.0.1', port: 8026 }, address, '127.0.0.1:8026'),
    smtp: read('POSTHORN_SMTP', { host: '127.0.0.1', port: 2525 }, address, '127.0.0.1:2525'),
    smtpTls: readTls(environment),
    mailHost: mailHost ?? 'localhost',
    isDevelopment: mailHost === null,
    managedDomain: read(
      'POSTHORN_MANAGED_DOMAIN',
      'inbox.localhost',
      domain,
      'a domain, such as inbox.example.com',
    ),
    dnsServers: read('POSTHORN_DNS', [], list(resolver), '127.0.0.1:53, or several separated by commas'),
    delivery,
    relay,
    mxPort: read('POSTHORN_MX_PORT', 25, port, 'a port, such as 25'),
    allowPrivateNetworks: read('POSTHORN_ALLOW_PRIVATE_NETWORKS', false, boolean, 'true or false'),
    smtpTrusted: read('POSTHORN_SMTP_TRUSTED', [], list(cidr), '10.0.0.0/8, or several separated by commas'),
    smtpMaxSizeBytes: read(
      'POSTHORN_SMTP_MAX_SIZE',
      26_214_400,
      integer(1024, 1 << 30),
      'bytes, such as 26214400',
    ),
    retryScheduleMs: read('POSTHORN_RETRY_SCHEDULE', defaultRetryMs, list(parseDuration), '1m,5m,15m,30m,1h'),
    retryLifetimeMs: read('POSTHORN_RETRY_LIFETIME', 72 * 3_600_000, parseDuration, '72h'),
    defaultLimits: read(
      'POSTHORN_DEFAULT_LIMITS',
      defaultLimits,
      limits,
      '{"messagesPerMinute":60}, with names from GET /v1/me',
    ),
    secretKeyFile: resolve(
      read('POSTHORN_SECRET_KEY_FILE', resolve(dataDir, 'secret-key'), string, 'a file with 32 bytes'),
    ),
    roles: read('POSTHORN_ROLES', [...roles], parseRoles, roles.join(',')),
    logLevel: read(
      'POSTHORN_LOG_LEVEL',
      'info',
      oneOf('trace', 'debug', 'info', 'warn', 'error'),
      'debug, info, warn or error',
    ),
    logFormat: read<LogFormat>(
      'POSTHORN_LOG_FORMAT',
      'pretty',
      oneOf<LogFormat>('pretty', 'json'),
      'pretty or json',
    ),
  }
}

const minute = 60_000
const hour = 60 * minute
const defaultRetryMs = [minute, 5 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 4 * hour, 6 * hour]

const known = new Set(
  (
    'DATA_DIR DATABASE_URL BLOB_URL HTTP PUBLIC_URL TRUSTED_PROXIES OPERATOR SMTP SMTP_TLS_CERT SMTP_TLS_KEY MAIL_HOST ' +
    'MANAGED_DOMAIN DNS DELIVERY RELAY_URL MX_PORT ALLOW_PRIVATE_NETWORKS SMTP_TRUSTED SMTP_MAX_SIZE RETRY_SCHEDULE ' +
    'RETRY_LIFETIME DEFAULT_LIMITS SECRET_KEY_FILE ROLES LOG_LEVEL LOG_FORMAT'
  ).split(' '),
)
/** Named already, for parts that come later: setting them changes nothing yet, and is refused for that. */
const later = new Set(['CLAMD', 'WEBHOOK_RETRY_SCHEDULE'])
/** Not settings of the service: where tests find the published suites and their database. */
const foreign = /^POSTHORN_TEST/

function refuseUnknown(environment: Environment): void {
  for (const name of Object.keys(environment)) {
    if (!name.startsWith('POSTHORN_') || foreign.test(name) || known.has(name.slice(9))) continue
    if (later.has(name.slice(9)))
      throw new SettingError(`${name} belongs to a part that is not there yet: leave it unset`)
    throw new SettingError(`${name} is not a setting: see docs/settings.md for those there are`)
  }
}

function readTls(environment: Environment): Settings['smtpTls'] {
  const certFile = environment['POSTHORN_SMTP_TLS_CERT']
  const keyFile = environment['POSTHORN_SMTP_TLS_KEY']
  if (!certFile && !keyFile) return null
  if (!certFile || !keyFile)
    throw new SettingError('POSTHORN_SMTP_TLS_CERT and POSTHORN_SMTP_TLS_KEY go together: write both')
  return { certFile: resolve(certFile), keyFile: resolve(keyFile) }
}

/** `api,mx` as roles; null where one of them is none. */
export function parseRoles(text: string): Role[] | null {
  return list((name) => roles.find((role) => role === name) ?? null)(text)
}

/** The limits that `text`, a JSON object, changes; null where a name or a value is none. */
export function parseLimits(text: string): Partial<Limits> | null {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
    const isLimit = ([name, limit]: [string, unknown]) =>
      name in defaultLimits && Number.isSafeInteger(limit) && (limit as number) >= 0
    return Object.entries(value).every(isLimit) ? value : null
  } catch {
    return null // not JSON
  }
}

function limits(text: string): Limits | null {
  const changed = parseLimits(text)
  return changed && { ...defaultLimits, ...changed }
}

function string(text: string): string {
  return text
}

function domain(text: string): string | null {
  return parseDomain(text)
}

function boolean(text: string): boolean | null {
  return text === 'true' ? true : text === 'false' ? false : null
}

function integer(min: number, max: number) {
  return (text: string) =>
    /^\d{1,12}$/.test(text) && Number(text) >= min && Number(text) <= max ? Number(text) : null
}

function port(text: string): number | null {
  return integer(0, 65_535)(text)
}

function oneOf<Value extends string>(...values: Value[]) {
  return (text: string) => values.find((value) => value === text) ?? null
}

function list<Value>(parse: (text: string) => Value | null) {
  return (text: string): Value[] | null => {
    const values = text.split(',').map((item) => parse(item.trim()))
    return values.includes(null) ? null : (values as Value[])
  }
}

function address(text: string): ListenAddress | null {
  const match = /^(?:\[([0-9a-f:.]+)\]|([^:[\]]+)):(\d{1,5})$/i.exec(text)
  const host = match?.[1] ?? match?.[2]
  const number = port(match?.[3] ?? '')
  return host && number !== null ? { host, port: number } : null
}

function resolver(text: string): string | null {
  if (isIP(text)) return text
  const parsed = address(text)
  return parsed && isIP(parsed.host) && parsed.port > 0 ? text : null
}

function cidr(text: string): string | null {
  return ipaddr.isValidCIDR(text) ? text : isIP(text) ? `${text}/${isIP(text) === 4 ? 32 : 128}` : null
}

function databaseUrl(text: string): string | null {
  return /^postgres(ql)?:\/\//.test(text) && URL.canParse(text) ? text : null
}

function webUrl(text: string): string | null {
  return /^https?:\/\//.test(text) && URL.canParse(text) ? text.replace(/\/+$/, '') : null
}

function fileUrl(text: string): string | null {
  return text.startsWith('file:') ? resolve(text.replace(/^file:(?:\/\/(?=\/))?/, '')) : null
}

function relayUrl(text: string): RelayTarget | null {
  if (!/^smtps?:\/\//.test(text) || !URL.canParse(text)) return null
  const { protocol, hostname, port: number, username, password } = new URL(text)
  const implicit = protocol === 'smtps:'
  if (!hostname) return null
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(number || (implicit ? 465 : 25)),
    tls: implicit ? 'implicit' : 'opportunistic',
    auth: username ? { user: decodeURIComponent(username), password: decodeURIComponent(password) } : null,
  }
}
