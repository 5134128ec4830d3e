// Provides the certificate of a node's listeners, from files, by ACME or self-signed, and orders new ones.
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import type { SecureContext } from 'node:tls'
import { isPublicFor } from '../acme/public-chain.ts'
import { StartRefused } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { Signal } from '../base/signal.ts'
import { within } from '../base/within.ts'
import type { Role, Settings } from '../config/settings.ts'
import type { MtaStsMode } from '../dns/mta-sts.ts'
import { orderDue } from '../flow/certificates/certificate-orders.ts'
import { WantedNames } from '../flow/certificates/wanted-names.ts'
import { openCertificateKey } from '../flow/secrets/certificate-secret.ts'
import type { Foundation } from '../foundation.ts'
import { contextOf, makeSelfSigned, type PemPair, readFilesAgain } from '../smtp/server/certificate.ts'
import { findAcmeAccount, findIssuedAt } from '../store/domains/certificates.ts'
import { Loop } from '../worker/loop.ts'
import type { Part } from './part.ts'

export interface Certificate {
  /** Returns another object once the certificate changes. */
  pair(): PemPair
  context(): SecureContext
  /** The MTA-STS mode: enforced once strangers accept the certificate for the mail host. */
  mtaStsMode(): MtaStsMode
  /** Wakes the check for a new certificate. */
  readonly changed: Signal
}

/** How soon a node shows a certificate that another node ordered. */
const reloadMs = 20_000
const orderPollMs = 20_000
const evaluateMs = 10_000
const stopMs = 2_000

/** Returns the certificate that this node shows. A certificate issued earlier is loaded before this resolves. */
export async function startCertificate(
  foundation: Foundation,
  roles: readonly Role[],
  parts: Part[],
): Promise<Certificate> {
  const changed = new Signal()
  const pair = await openPair(foundation, roles, changed, parts)
  return { pair, context: contextOf(pair), mtaStsMode: askMode(foundation, pair), changed }
}

async function openPair(
  foundation: Foundation,
  roles: readonly Role[],
  changed: Signal,
  parts: Part[],
): Promise<() => PemPair> {
  const { settings, log } = foundation
  if (settings.smtpTls) return openFiles(settings.smtpTls, log)
  const { https, submission, submissions } = settings
  const shows =
    roles.includes('mx') || (roles.includes('api') && [https, submission, submissions].some(Boolean))
  const selfSigned = shows ? await makeSelfSigned(settings.mailHost) : none
  if (!settings.acme) return () => selfSigned
  return await followStored(foundation, { directory: settings.acme.directory, selfSigned, changed }, parts)
}

type PairFiles = NonNullable<Settings['smtpTls']>

/** Refuses to start if the files do not hold a certificate and its key, and says which setting is wrong. */
function openFiles(files: PairFiles, log: Log): () => PemPair {
  const [certSetting, keySetting] = ['POSTHORN_SMTP_TLS_CERT', 'POSTHORN_SMTP_TLS_KEY']
  const chain = 'write the name of a PEM file with the certificate and its chain'
  const pem = 'write the name of a PEM file with the key of the certificate, without a passphrase'
  const certificate = readAs(certSetting, files.certFile, chain, (bytes) => new X509Certificate(bytes))
  const key = readAs(keySetting, files.keyFile, pem, (bytes) => createPrivateKey(bytes))
  if (!certificate.checkPrivateKey(key))
    throw unusable(`${keySetting}=${files.keyFile} is not the key of the certificate in ${certSetting}`, pem)
  try {
    return readFilesAgain(files, log)
  } catch (error) {
    throw unusable(`${certSetting} and ${keySetting} cannot be used (${lineOf(error)})`, chain)
  }
}

const maxPemBytes = 1 << 20

/** Returns the result of `read`. Refuses folders, devices, files over 1 MiB, and files that `read` rejects. */
function readAs<Found>(setting: string, file: string, mend: string, read: (bytes: Buffer) => Found): Found {
  try {
    const stats = statSync(file)
    if (!stats.isFile() || stats.size > maxPemBytes) throw new Error('it is not a PEM file')
    return read(readFileSync(file))
  } catch (error) {
    throw unusable(`${setting}=${file} cannot be used (${lineOf(error)})`, mend)
  }
}

/** Returns the error without the paths that the system puts after its code. */
function lineOf(error: unknown): string {
  const { code, syscall, message } = error as NodeJS.ErrnoException
  return syscall !== undefined && code !== undefined ? code : message.split('\n', 1)[0]!
}

function unusable(reason: string, mend: string): StartRefused {
  return new StartRefused('TLS certificate', reason, mend)
}

/** For a node without a TLS listener. */
const none: PemPair = { cert: '', key: '' }

/** The stored certificate, read again when it changes. Until one is stored, a self-signed certificate. */
async function followStored(
  { db, log, secretBox }: Foundation,
  { directory, selfSigned, changed }: { directory: string; selfSigned: PemPair; changed: Signal },
  parts: Part[],
): Promise<() => PemPair> {
  let pair = selfSigned
  let issuedMs: number | null = null
  const reload = async () => {
    const foundMs = (await findIssuedAt(db, directory))?.getTime() ?? null
    if (foundMs === issuedMs) return false
    const certificate = (await findAcmeAccount(db, directory))?.certificate ?? null
    // Once a certificate is revoked, its key is no longer shown, because it may have been stolen.
    pair = certificate
      ? { cert: certificate.chain, key: openCertificateKey(secretBox, certificate) }
      : selfSigned
    issuedMs = certificate?.issuedAt.getTime() ?? null
    log.info({ directory, names: certificate?.names ?? null }, 'certificate in use')
    return false
  }
  await reload()
  const loop = new Loop({
    name: 'reload certificate',
    run: reload,
    signal: changed,
    intervalMs: reloadMs,
    log,
  })
  loop.start()
  parts.push({ stop: () => loop.stop() })
  return () => pair
}

/** Called for each policy. Evaluates again if the certificate changed or `evaluateMs` have passed. */
function askMode({ settings, clock }: Foundation, pair: () => PemPair): () => MtaStsMode {
  let known: { pair: PemPair; mode: MtaStsMode; atMs: number } | null = null
  return () => {
    const current = pair()
    const nowMs = clock.monotonicMs()
    if (known?.pair !== current || nowMs - known.atMs > evaluateMs) {
      const isPublic = isPublicFor(current.cert, settings.mailHost, clock.now())
      known = { pair: current, mode: isPublic ? 'enforce' : 'testing', atMs: nowMs }
    }
    return known.mode
  }
}

/** Starts to order certificates. Call it once the API listens, because the API answers the challenges. */
export function startOrders(
  foundation: Foundation,
  acme: NonNullable<Settings['acme']>,
  changed: Signal,
): Part {
  const { settings, db, clock, log, secretBox, resolver } = foundation
  const stop = new AbortController()
  const names = new WantedNames({
    db,
    clock,
    resolver,
    ownHosts: ownHostsOf(settings),
    managedDomain: settings.managedDomain,
  })
  const deps = {
    db,
    clock,
    log,
    secretBox,
    authority: acme,
    names,
    stop: stop.signal,
    wake: () => changed.wake(),
  }
  const run = () => orderDue(deps).then(() => false)
  const loop = new Loop({ name: 'order certificates', run, intervalMs: orderPollMs, log })
  loop.start()
  return {
    stop: async () => {
      stop.abort()
      // A slow authority does not delay the stop: its answer is no longer needed.
      await within(stopMs, loop.stop(), () => {})
    },
  }
}

/** Returns the mail host, and the API's host if that is another name. */
export function ownHostsOf({ mailHost, publicUrl }: Pick<Settings, 'mailHost' | 'publicUrl'>): string[] {
  const host = publicUrl ? new URL(publicUrl).hostname : mailHost
  return [...new Set([mailHost, ...(isName(host) ? [host] : [])])]
}

/** Certificates are ordered only for names with a dot, never for IP addresses. */
function isName(host: string): boolean {
  return /^[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z][a-z0-9-]*$/.test(host)
}
