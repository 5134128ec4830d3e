// The certificate that a node's listeners show, from files, from an authority by ACME, or made on the spot; and its orders.
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
  /** Another object once the certificate is another one. */
  pair(): PemPair
  context(): SecureContext
  /** Whether senders may be told to insist on it: enforced, once strangers accept it for the mail host. */
  mtaStsMode(): MtaStsMode
  /** There may be another one: look now. */
  readonly changed: Signal
}

/** How soon a node shows what another one ordered. */
const reloadMs = 5_000
const orderPollMs = 5_000
const evaluateMs = 10_000
const stopMs = 2_000

/** What this node shows; one that was issued before is there when this resolves. */
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
  const shows = roles.includes('mx') || (roles.includes('api') && settings.https !== null)
  const selfSigned = shows ? await makeSelfSigned(settings.mailHost) : none
  if (!settings.acme) return () => selfSigned
  return await followStored(foundation, { directory: settings.acme.directory, selfSigned, changed }, parts)
}

type PairFiles = NonNullable<Settings['smtpTls']>

/** Refuses the start over files that do not hold a certificate and its key, and says which setting names the wrong one. */
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

/** What `read` makes of the file; anything that is none, a folder or a device among it, is refused. */
function readAs<Found>(setting: string, file: string, mend: string, read: (bytes: Buffer) => Found): Found {
  try {
    const stats = statSync(file)
    if (!stats.isFile() || stats.size > maxPemBytes) throw new Error('it is no PEM file')
    return read(readFileSync(file))
  } catch (error) {
    throw unusable(`${setting}=${file} cannot be used (${lineOf(error)})`, mend)
  }
}

/** What went wrong, without the paths that the system puts behind its code. */
function lineOf(error: unknown): string {
  const { code, syscall, message } = error as NodeJS.ErrnoException
  return syscall !== undefined && code !== undefined ? code : message.split('\n', 1)[0]!
}

function unusable(reason: string, mend: string): StartRefused {
  return new StartRefused('TLS certificate', reason, mend)
}

/** Of a node without a listener that shows one. */
const none: PemPair = { cert: '', key: '' }

/** The stored certificate, read again when there is another; until there is one, one that is made on the spot. */
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
    // A key that may have been stolen is shown no longer once its certificate was revoked.
    pair = certificate
      ? { cert: certificate.chain, key: openCertificateKey(secretBox, certificate) }
      : selfSigned
    issuedMs = certificate?.issuedAt.getTime() ?? null
    log.info({ directory, names: certificate?.names ?? null }, 'the certificate is in use')
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

/** Asked for each policy; evaluated now and then. */
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

/** Starts to order certificates; begin once the API listens, for it answers the challenges. */
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
      // An authority that is slow to answer holds nobody up: its answer is not needed any more.
      await within(stopMs, loop.stop(), () => {})
    },
  }
}

/** The mail host, and the host of the API where that is a name of its own. */
export function ownHostsOf({ mailHost, publicUrl }: Pick<Settings, 'mailHost' | 'publicUrl'>): string[] {
  const host = publicUrl ? new URL(publicUrl).hostname : mailHost
  return [...new Set([mailHost, ...(isName(host) ? [host] : [])])]
}

/** Certificates are ordered for names with a dot, and not for addresses. */
function isName(host: string): boolean {
  return /^[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z][a-z0-9-]*$/.test(host)
}
