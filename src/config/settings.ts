// Reads and checks every setting once. A wrong setting stops the start, in one line that says what to write instead.
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import type { LogFormat } from '../base/log.ts'
import type { BlobStore } from '../blobs/open-blobs.ts'
import { defaultLimits } from '../flow/accounts/organization.ts'
import type { RelayTarget } from '../flow/delivering/next-hop.ts'
import type { OutboundAddresses } from '../flow/delivering/outbound.ts'
import type { OidcSettings } from '../flow/people/oidc.ts'
import type { DeliveryMode } from '../flow/route-policy.ts'
import type { Blocklist } from '../mailauth/blocklists.ts'
import type { ClamdAddress } from '../scan/clamd.ts'
import type { RspamdAddress } from '../scan/rspamd.ts'
import type { Limits } from '../store/accounts/organizations.ts'
import { percent, readAcme, readBlobStore, readOidc } from './linked-settings.ts'
import { readListener } from './listener.ts'
import { ranges, readMail, readReceiving } from './mail-settings.ts'
import { type Environment, Reader, SettingError } from './setting-reader.ts'
import {
  address,
  blocklists,
  cidrs,
  databaseUrl,
  defaultRetention,
  drainDelay,
  emailAddress,
  fileName,
  formatAddress,
  integer,
  type ListenAddress,
  limits,
  list,
  maxWorkers,
  oneOf,
  path,
  type Retention,
  retention,
  webUrl,
  words,
  workerCount,
} from './setting-values.ts'

export type Role = 'api' | 'mx' | 'delivery' | 'webhooks' | 'jobs' | 'dashboard'

export const roles: readonly Role[] = ['api', 'mx', 'delivery', 'webhooks', 'jobs', 'dashboard']

export interface Settings {
  dataDir: string
  databaseUrl: string | null
  blobStore: BlobStore
  http: ListenAddress
  /** Null: no HTTPS listener. */
  https: ListenAddress | null
  /** The authority that issues certificates, and the address to which it may write. */
  acme: { directory: string; email: string } | null
  publicUrl: string | null
  trustedProxies: string[]
  httpMemoryBytes: number
  operator: ListenAddress
  smtp: ListenAddress
  /** Listeners for mail of customers' programs: with STARTTLS, and with TLS from the start. Null: none. */
  submission: ListenAddress | null
  submissions: ListenAddress | null
  smtpTls: { certFile: string; keyFile: string } | null
  mailHost: string
  isDevelopment: boolean
  managedDomain: string
  dnsServers: string[]
  /** Resolvers (CIDRs) whose validation of signatures is trusted, besides those on this machine. */
  dnsTrusted: string[]
  delivery: DeliveryMode
  relay: RelayTarget | null
  /** The file with the limits of destinations. Null: the built-in limits. */
  deliveryFile: string | null
  mxPort: number
  /** The addresses of this machine from which mail leaves. */
  outbound: OutboundAddresses
  allowPrivateNetworks: boolean
  smtpTrusted: string[]
  /** Asked for each peer of the mail server, in this order. */
  blocklists: Blocklist[]
  smtpMaxSizeBytes: number
  /** Space to keep free on disks; null for a share of each disk. */
  diskReserveBytes: number | null
  /** The treatment of received mail that fails DMARC if its domain wants it refused. */
  dmarc: 'refuse' | 'report'
  /** Sealers whose ARC results we trust (RFC 8617). */
  arcTrusted: string[]
  clamd: ClamdAddress | null
  rspamd: RspamdAddress | null
  /** The inbox that sends the aggregate reports of DMARC; null: no reports. */
  dmarcReports: string | null
  /** The inbox that sends reports about TLS; null: no reports. */
  tlsReports: string | null
  /** Requests for access are mailed to this address; null: no mail. */
  operatorMail: string | null
  maxDownloadBytes: number
  retryScheduleMs: number[]
  retryLifetimeMs: number
  /** How long data is kept. */
  retention: Retention
  webhookRetryScheduleMs: number[]
  defaultLimits: Limits
  /** True if anyone may sign up; otherwise only invited people. */
  isSignUpOpen: boolean
  /** The identity provider with which people may sign in; null: none. */
  oidc: OidcSettings | null
  secretKeyFile: string
  /** Encrypts the key in backups. Null: the passphrase is given in another way, or there is none. */
  backupPassphrase: string | null
  /** True only for the data folder. If a file was named and is missing, a mount probably failed, so no key is made. */
  mayMakeSecretKey: boolean
  /** How long a stop keeps the listeners open after `/readyz` announces it. */
  drainDelayMs: number
  roles: Role[]
  /** Processes of this service. More than one run under a supervisor. */
  workers: number
  logLevel: string
  logFormat: LogFormat
}

/** Returns the process's environment, and `.env` of the folder for variables that are not set. */
export function readEnvironment(folder: string, environment: Environment): Environment {
  const file = resolve(folder, '.env')
  return existsSync(file) ? { ...parseEnv(readEnvFile(file)), ...environment } : environment
}

function readEnvFile(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new SettingError(`${file} cannot be read (${code}): let this user read it, or remove it`)
  }
}

/** Returns the names of all settings. */
export function listSettings(): string[] {
  const reader = new Reader({})
  readWith(reader, '.')
  return reader.names
}

/**
 * Reads every setting. Relative paths start at `folder`, by default the current folder. Throws a SettingError at the first
 * unusable or unknown setting.
 */
export function readSettings(environment: Environment, folder = '.'): Settings {
  const reader = new Reader(environment)
  const settings = readWith(reader, folder)
  reader.refuseOthers()
  refuseSharedAddress(settings)
  return withPublicUrl(settings)
}

function readWith(reader: Reader, folder: string): Settings {
  return {
    ...readFolders(reader, folder),
    ...readListeners(reader, folder),
    ...readMail(reader, folder),
    ...readReceiving(reader),
    acme: readAcme(reader),
    ...readAccess(reader),
    ...readRunning(reader),
  }
}

/** Refuses two listeners on one address: the second would fail, and report that another program uses the address. */
function refuseSharedAddress({ http, https, operator, smtp, submission, submissions }: Settings): void {
  const seen = new Map<string, string>()
  const listeners = {
    HTTP: http,
    HTTPS: https,
    OPERATOR: operator,
    SMTP: smtp,
    SUBMISSION: submission,
    SUBMISSIONS: submissions,
  }
  for (const [name, listen] of Object.entries(listeners)) {
    if (!listen || listen.port === 0) continue
    const address = formatAddress(listen)
    const other = seen.get(address)
    if (other)
      throw new SettingError(
        `POSTHORN_${other} and POSTHORN_${name} are both ${address}: give each its own address`,
      )
    seen.set(address, name)
  }
}

/** If HTTPS listens, the public URL of the API is there, under the name of the mail host. */
function withPublicUrl(settings: Settings): Settings {
  const { https, publicUrl, isDevelopment, mailHost } = settings
  if (!https || https.port === 0 || publicUrl || isDevelopment) return settings
  return { ...settings, publicUrl: `https://${mailHost}${https.port === 443 ? '' : `:${https.port}`}` }
}

function readFolders(reader: Reader, folder: string) {
  const dataDir = reader.read('POSTHORN_DATA_DIR', './data', path, 'a folder, such as ./data')
  const secretKeyFile = reader.read(
    'POSTHORN_SECRET_KEY_FILE',
    null,
    fileName,
    'the name of a file that holds the key',
  )
  return {
    dataDir: resolve(folder, dataDir),
    databaseUrl: reader.read(
      'POSTHORN_DATABASE_URL',
      null,
      databaseUrl,
      `postgres://user:password@host:5432/database, ${percent}`,
    ),
    blobStore: readBlobStore(reader, folder, dataDir),
    diskReserveBytes: reader.read<number | null>(
      'POSTHORN_DISK_RESERVE',
      null,
      integer(0, 2 ** 39),
      'bytes, such as 1073741824',
    ),
    secretKeyFile: resolve(folder, secretKeyFile ?? join(dataDir, 'secret-key')),
    mayMakeSecretKey: secretKeyFile === null,
    backupPassphrase: reader.read('POSTHORN_BACKUP_PASSPHRASE', null, words(1_024), 'a passphrase'),
  }
}

function readListeners(reader: Reader, folder: string) {
  const certFile = reader.read('POSTHORN_SMTP_TLS_CERT', null, fileName, 'the name of a PEM file')
  const keyFile = reader.read('POSTHORN_SMTP_TLS_KEY', null, fileName, 'the name of a PEM file')
  if ((certFile === null) !== (keyFile === null)) {
    throw new SettingError('POSTHORN_SMTP_TLS_CERT and POSTHORN_SMTP_TLS_KEY go together: set both')
  }
  const pathOf = (file: string) => resolve(folder, file)
  return {
    http: readListener(reader, 'POSTHORN_HTTP', '127.0.0.1:8025'),
    https: reader.read('POSTHORN_HTTPS', null, address, 'one address, such as 0.0.0.0:443'),
    publicUrl: reader.read('POSTHORN_PUBLIC_URL', null, webUrl, 'https://mail.example.com'),
    trustedProxies: reader.read('POSTHORN_TRUSTED_PROXIES', [], cidrs, ranges),
    httpMemoryBytes: reader.read(
      'POSTHORN_HTTP_MEMORY',
      256 << 20,
      integer(16 << 20, 64 * 2 ** 30),
      'bytes, such as 268435456',
    ),
    operator: readListener(reader, 'POSTHORN_OPERATOR', '127.0.0.1:8026'),
    smtp: readListener(reader, 'POSTHORN_SMTP', '127.0.0.1:2525'),
    submission: reader.read('POSTHORN_SUBMISSION', null, address, 'one address, such as 0.0.0.0:587'),
    submissions: reader.read('POSTHORN_SUBMISSIONS', null, address, 'one address, such as 0.0.0.0:465'),
    smtpTls: certFile && keyFile ? { certFile: pathOf(certFile), keyFile: pathOf(keyFile) } : null,
    smtpTrusted: reader.read('POSTHORN_SMTP_TRUSTED', [], cidrs, ranges),
    blocklists: reader.read(
      'POSTHORN_DNSBL',
      [],
      blocklists,
      'zen.example.org, tell:list.example.net, or up to 8 of them, each once, separated by commas',
    ),
    smtpMaxSizeBytes: reader.read(
      'POSTHORN_SMTP_MAX_SIZE',
      26_214_400,
      integer(1024, 1 << 30),
      'bytes, such as 26214400',
    ),
  }
}

/** Reads who may sign up and sign in, and where requests for access go. */
function readAccess(reader: Reader): Pick<Settings, 'isSignUpOpen' | 'oidc' | 'operatorMail'> {
  const kinds = oneOf('open', 'invited')
  return {
    isSignUpOpen: reader.read('POSTHORN_SIGN_UP', 'open', kinds, 'open or invited') === 'open',
    oidc: readOidc(reader),
    operatorMail: reader.read(
      'POSTHORN_OPERATOR_MAIL',
      null,
      emailAddress,
      'your email address, such as ops@example.com',
    ),
  }
}

function readRunning(reader: Reader) {
  const levels = oneOf('trace', 'debug', 'info', 'warn', 'error')
  const names = '{"messagesPerMinute":60}, with names from GET /v1/me'
  return {
    defaultLimits: reader.read('POSTHORN_DEFAULT_LIMITS', defaultLimits, limits, names),
    drainDelayMs: reader.read('POSTHORN_DRAIN_DELAY', 0, drainDelay, '5s, or up to 60s'),
    retention: reader.read(
      'POSTHORN_RETENTION',
      defaultRetention,
      retention,
      '365d, or submissions=90d,messages=365d,audit=365d,sent-content=30d,operator-mail=14d; 30d or more, messages 7d, sent-content and operator-mail 1d',
    ),
    roles: reader.read('POSTHORN_ROLES', [...roles], parseRoles, roles.join(',')),
    workers: reader.read('POSTHORN_WORKERS', 1, workerCount, `1 to ${maxWorkers}, or auto for one per core`),
    logLevel: reader.read('POSTHORN_LOG_LEVEL', 'info', levels, 'debug, info, warn or error'),
    logFormat: reader.read(
      'POSTHORN_LOG_FORMAT',
      'pretty',
      oneOf<LogFormat>('pretty', 'json'),
      'pretty or json',
    ),
  }
}

/** Parses `api,mx` as roles; null if one is unknown. */
export function parseRoles(text: string): Role[] | null {
  return list((name) => roles.find((role) => role === name) ?? null)(text)
}

/** The behaviour of a restored copy until it is released, and how to release it. */
export const holdWords =
  'mail to other domains is captured, earlier mail keeps waiting, and no webhook is called'
export const releaseMend = 'to replace the original, run posthorn restore release, then restart the service'

/** The remedy for inboxes on a former managed domain. */
export const formerMend = 'set POSTHORN_MANAGED_DOMAIN back to that domain, or delete the inboxes'
