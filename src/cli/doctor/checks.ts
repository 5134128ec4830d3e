// The doctor's checks of this machine: the data folder, the database, the blobs, the listeners, the certificate.

import { createPrivateKey, X509Certificate } from 'node:crypto'
import { constants } from 'node:fs'
import { access, readFile } from 'node:fs/promises'
import { get } from 'node:https'
import { connect, type Socket } from 'node:net'
import { dirname } from 'node:path'
import { connect as connectSecurely } from 'node:tls'
import { counted } from '../../base/counted.ts'
import { readDiskRoom } from '../../blobs/disk-reserve.ts'
import { agreedSettings, agreementMend, describeDisagreement } from '../../config/agreed.ts'
import { listenerFault, tryListening } from '../../config/listener.ts'
import type { ListenAddress } from '../../config/setting-values.ts'
import { formatAddress, reachable } from '../../config/setting-values.ts'
import { formerMend, type Role, roles, type Settings } from '../../config/settings.ts'
import { isFolderClaimed } from '../../data-folder.ts'
import { workerName } from '../../own-worker.ts'
import type { Db } from '../../postgres/db.ts'
import { listFormerDomains } from '../../store/mailbox/inboxes.ts'
import { listDisagreements, listNodes } from '../../store/nodes.ts'
import { arePagesBuilt } from '../../web/pages-folder.ts'

export interface Check {
  name: string
  /** `warning`: it works, but not as well as it could. `skipped`: nothing to check here. */
  status: 'ok' | 'warning' | 'failed' | 'skipped'
  detail: string
  /** The remedy; null if nothing must be done. */
  mend: string | null
}

export function ok(name: string, detail: string): Check {
  return { name, status: 'ok', detail, mend: null }
}

export function skipped(name: string, detail: string): Check {
  return { name, status: 'skipped', detail, mend: null }
}

export function warning(name: string, detail: string, mend: string): Check {
  return { name, status: 'warning', detail, mend }
}

export function failed(name: string, detail: string, mend: string): Check {
  return { name, status: 'failed', detail, mend }
}

const lowSpaceBytes = 1 << 30
export const gibibytes = (bytes: number) => `${(bytes / 2 ** 30).toFixed(1)} GiB`

/** Whether the folder, or the nearest existing parent, is writable, and how much space is free. */
export async function checkFolder({ dataDir, diskReserveBytes }: Settings): Promise<Check> {
  const name = 'data folder'
  const nearest = await nearestFolder(dataDir)
  try {
    await access(nearest, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    return failed(
      name,
      (error as Error).message,
      'let this user write to it, or set POSTHORN_DATA_DIR to another folder',
    )
  }
  const { freeBytes, reserveBytes } = await readDiskRoom(nearest, diskReserveBytes)
  const detail = `${dataDir}, ${gibibytes(freeBytes)} free`
  if (freeBytes < reserveBytes) return withoutRoom(name, detail, reserveBytes)
  return freeBytes < lowSpaceBytes
    ? warning(name, detail, 'free disk space: mail is refused when the disk is full')
    : ok(name, detail)
}

/** Adds a note if a service has claimed the folder. If none runs here, the folder is a copy. */
export async function noteClaim(folder: Check, db: Db, { dataDir }: Settings): Promise<Check> {
  if (!(await isFolderClaimed(db, dataDir))) return folder
  const copy = 'if none is running here, the folder is a copy: delete its folder-id'
  return { ...folder, detail: `${folder.detail}, in use by a running Posthorn (${copy})` }
}

export function withoutRoom(name: string, detail: string, reserveBytes: number): Check {
  return failed(
    name,
    `${detail}: below ${gibibytes(reserveBytes)}, mail is refused`,
    'free disk space, or lower POSTHORN_DISK_RESERVE',
  )
}

async function nearestFolder(folder: string): Promise<string> {
  for (let path = folder; ; path = dirname(path)) {
    const missing = await access(path).then(
      () => false,
      (error) => error.code === 'ENOENT' && path !== dirname(path),
    )
    if (!missing) return path
  }
}

const oldestMajor = 15
const maxClockSeconds = 5

/** Checks the version, schema and clock of an open database. */
export async function checkDatabase(db: Db, { databaseUrl }: Settings): Promise<Check> {
  const name = 'database'
  const [askedMs, askedAtMs] = [performance.now(), Date.now()]
  const [server] = await db.query<{ version: string; number: number; atMs: number }>(
    `select current_setting('server_version') as version, current_setting('server_version_num')::int as number,
      (extract(epoch from clock_timestamp()) * 1000)::float8 as "atMs"`,
  )
  const tripMs = performance.now() - askedMs
  const offSeconds = Math.round((askedAtMs + tripMs / 2 - server!.atMs) / 1000)
  const [schema] = await db.query<{ name: string }>(
    'select name from schema_migration order by version desc limit 1',
  )
  const kind = databaseUrl ? 'external' : 'embedded'
  const detail = `PostgreSQL ${server!.version}, ${kind}, schema at ${schema?.name.replace('.sql', '')}, round trip ${tripMs.toFixed(1)} ms`
  if (server!.number < oldestMajor * 10_000)
    return failed(name, detail, `use PostgreSQL ${oldestMajor} or later`)
  if (Math.abs(offSeconds) > maxClockSeconds) {
    const direction = offSeconds > 0 ? 'ahead of' : 'behind'
    const clocks = `this machine's clock is ${Math.abs(offSeconds)} s ${direction} the database's`
    return warning(
      name,
      `${detail}; ${clocks}`,
      'synchronize both clocks by NTP: log lines have the time of this machine',
    )
  }
  return ok(name, detail)
}

/** Whether every managed inbox is on the current managed domain. */
export async function checkInboxes(db: Db, { managedDomain }: Settings): Promise<Check> {
  const name = 'inboxes'
  const former = await listFormerDomains(db, managedDomain)
  if (former.length === 0) return ok(name, `all managed inboxes are on ${managedDomain}`)
  const counted = former.map(({ domain, inboxes }) => `${inboxes} on ${domain}`).join(', ')
  return failed(name, `these receive no mail: ${counted}`, formerMend)
}

/** Whether a node with the dashboard has its built pages. */
export function checkPages({ roles }: Pick<Settings, 'roles'>, folder: string): Check {
  const name = 'pages'
  if (!roles.includes('dashboard')) return skipped(name, 'this node does not serve the dashboard')
  if (arePagesBuilt(folder)) return ok(name, 'the dashboard is built')
  return warning(name, 'the dashboard is not built', 'run npm run build in the folder of Posthorn')
}

/** Mail still flows without the dashboard. Without any other role a part of it stops. */
const neededRoles: readonly Role[] = roles.filter((role) => role !== 'dashboard')

/** Whether the living nodes share this node's settings, and together have every role. */
export async function checkNodes(db: Db, settings: Settings): Promise<Check> {
  const name = 'nodes'
  const own = agreedSettings(settings)
  const [different, nodes] = [await listDisagreements(db, own), await listNodes(db)]
  if (different.length > 0)
    return failed(name, different.map((found) => describeDisagreement(own, found)).join('; '), agreementMend)
  const living = nodes.filter(({ isAlive }) => isAlive)
  if (living.length === 0) return ok(name, 'no node is running')
  const missing = neededRoles.filter((role) => !living.some(({ roles }) => roles?.includes(role)))
  if (missing.length > 0)
    return failed(
      name,
      `no living node has the role ${missing.join(', ')}`,
      'add the role to POSTHORN_ROLES of a node, or start the node that has it',
    )
  return ok(
    name,
    `${counted(living.length, 'node is', 'nodes are')} running, with the same settings and every role`,
  )
}

/** Whether every worker of a service on this machine lives. */
export async function checkWorkers(db: Db, { workers }: Settings): Promise<Check> {
  const name = 'workers'
  if (workers === 1) return skipped(name, 'the service is one process')
  const names = Array.from({ length: workers }, (_, index) => workerName(index + 1))
  const living = (await listNodes(db)).filter(({ host, isAlive }) => isAlive && names.includes(host ?? ''))
  if (living.length === 0) return ok(name, 'the service is not running')
  const detail = `${living.length} of ${workers} workers of this machine are running`
  if (living.length >= workers) return ok(name, detail)
  return warning(name, detail, 'see the log; if POSTHORN_WORKERS has changed, restart the service')
}

const answerLimitMs = 2_000

/** Finds out for each listener's address whether it is free, a Posthorn, or another program. */
export function checkListeners(settings: Settings): Promise<Check[]> {
  const { http, https, operator, smtp, submission, submissions } = settings
  return Promise.all([
    ...(https ? [checkListener('HTTPS port', 'POSTHORN_HTTPS', https, isOursByHttps)] : []),
    checkListener('HTTP port', 'POSTHORN_HTTP', http, async (address) => {
      const answer = await fetch(`http://${address}/v1/me`, { signal: AbortSignal.timeout(answerLimitMs) })
      return ((await answer.json()) as { error?: string }).error === 'unauthorized'
    }),
    checkListener('operator port', 'POSTHORN_OPERATOR', operator, async (address) => {
      const answer = await fetch(`http://${address}/healthz`, { signal: AbortSignal.timeout(answerLimitMs) })
      return ((await answer.json()) as { status?: string }).status === 'alive'
    }),
    checkListener('SMTP port', 'POSTHORN_SMTP', smtp, () => isOursBySmtp(smtp)),
    ...(submission
      ? [checkListener('submission port', 'POSTHORN_SUBMISSION', submission, () => isOursBySmtp(submission))]
      : []),
    ...(submissions
      ? [
          checkListener('submission port with TLS', 'POSTHORN_SUBMISSIONS', submissions, () =>
            isOursBySmtp(submissions, openTls),
          ),
        ]
      : []),
  ])
}

type Open = (address: ListenAddress) => Socket

async function isOursBySmtp(listen: ListenAddress, open: Open = connect): Promise<boolean> {
  return / ESMTP Posthorn\r?\n/.test(await readGreeting(reachable(listen), answerLimitMs, open))
}

function openTls(address: ListenAddress): Socket {
  return connectSecurely({ ...address, rejectUnauthorized: false })
}

/** Accepts any certificate: another check covers whether it is the right one. */
function isOursByHttps(address: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const options = { rejectUnauthorized: false, signal: AbortSignal.timeout(answerLimitMs) }
    const request = get(`https://${address}/v1/me`, options, (response) => {
      response.resume()
      resolve(response.statusCode === 401 && response.headers['strict-transport-security'] !== undefined)
    })
    request.on('error', reject)
  })
}

async function checkListener(
  name: string,
  setting: string,
  listen: ListenAddress,
  isPosthorn: (address: string) => Promise<boolean>,
): Promise<Check> {
  const address = formatAddress(listen)
  if (listen.port === 0) return ok(name, `${address}: a free port is chosen at each start`)
  const code = await tryListening(listen)
  if (code === null) return ok(name, `${address} is free`)
  // A command may lack the right to listen that the service has, so EACCES comes even if a service listens there.
  if (code === 'EADDRINUSE' || code === 'EACCES') {
    // A program that does not answer like ours is another program.
    const isOurs = await isPosthorn(formatAddress(reachable(listen))).catch(() => false)
    if (isOurs) return ok(name, `${address}: a running Posthorn answers`)
  }
  const { reason, mend } = listenerFault(setting, listen, code)
  return failed(name, reason, mend)
}

const maxGreetingBytes = 1024

/** Returns a server's first line. Rejects if the server cannot be reached or sends no line in time. */
export function readGreeting(
  { host, port }: ListenAddress,
  limitMs = answerLimitMs,
  open: Open = connect,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = open({ host, port })
    const timer = setTimeout(() => socket.destroy(new Error(`no answer within ${limitMs / 1000} s`)), limitMs)
    let greeting = ''
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      greeting += text
      if (greeting.includes('\n') || greeting.length > maxGreetingBytes)
        socket.end('QUIT\r\n', () => socket.destroy())
    })
    socket.on('error', reject)
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(greeting)
    })
  })
}

const renewalMs = 14 * 86_400_000

/** Checks the SMTP listener's certificate: its files, their match, its name and its validity. */
export async function checkCertificate(
  { smtpTls, mailHost, isDevelopment }: Settings,
  now: Date,
): Promise<Check> {
  const name = 'TLS certificate'
  if (!smtpTls) {
    const detail = 'self-signed, created at each start'
    if (isDevelopment) return ok(name, detail)
    return warning(
      name,
      `${detail}: senders that verify certificates refuse it`,
      'set POSTHORN_ACME, or POSTHORN_SMTP_TLS_CERT and POSTHORN_SMTP_TLS_KEY',
    )
  }
  const mend = 'POSTHORN_SMTP_TLS_CERT and POSTHORN_SMTP_TLS_KEY must name a PEM chain and its PEM key'
  try {
    const [cert, key] = await Promise.all([readFile(smtpTls.certFile), readFile(smtpTls.keyFile)])
    const certificate = new X509Certificate(cert)
    if (!certificate.checkPrivateKey(createPrivateKey(key)))
      return failed(name, 'the key does not belong to the certificate', mend)
    return evaluateCertificate(certificate, mailHost, now)
  } catch (error) {
    return failed(name, (error as Error).message, mend)
  }
}

type Certified = Pick<X509Certificate, 'validTo' | 'subject' | 'checkHost'>

/** Evaluates the certificate as senders will. */
export function evaluateCertificate(certificate: Certified, mailHost: string, now: Date): Check {
  const name = 'TLS certificate'
  const end = new Date(certificate.validTo)
  const detail = `${certificate.subject.replaceAll('\n', ', ')}, until ${end.toISOString().slice(0, 10)}`
  if (end <= now)
    return failed(name, `${detail}: expired`, 'renew it; the service reads changed files automatically')
  if (!certificate.checkHost(mailHost))
    return warning(name, `${detail}: not valid for ${mailHost}`, `get a certificate for ${mailHost}`)
  if (end.getTime() - now.getTime() < renewalMs)
    return warning(name, detail, 'renew it soon; the service reads changed files automatically')
  return ok(name, detail)
}
