// The certificate that a node's listeners show, from files, from an authority by ACME, or made on the spot; and its orders.
import type { SecureContext } from 'node:tls'
import { isPublicFor } from '../base/public-chain.ts'
import { Signal } from '../base/signal.ts'
import { within } from '../base/within.ts'
import type { Role, Settings } from '../config/settings.ts'
import type { MtaStsMode } from '../dns/mta-sts.ts'
import { Resolver } from '../dns/resolver.ts'
import { openCertificateKey } from '../flow/certificate-secret.ts'
import { orderDue } from '../flow/certificates/certificate-orders.ts'
import { WantedNames } from '../flow/certificates/wanted-names.ts'
import type { Foundation } from '../foundation.ts'
import { contextOf, makeSelfSigned, type PemPair, readFilesAgain } from '../smtp/server/certificate.ts'
import { findAcmeAccount, findIssuedAt } from '../store/certificates.ts'
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
  if (settings.smtpTls) return readFilesAgain(settings.smtpTls, log)
  const shows = roles.includes('mx') || (roles.includes('api') && settings.https !== null)
  const selfSigned = shows ? await makeSelfSigned(settings.mailHost) : none
  if (!settings.acme) return () => selfSigned
  return await followStored(foundation, { directory: settings.acme.directory, selfSigned, changed }, parts)
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
  const { settings, db, clock, log, secretBox } = foundation
  const stop = new AbortController()
  const names = new WantedNames({
    ...{ db, clock, resolver: new Resolver({ servers: settings.dnsServers }) },
    ...{ ownHosts: ownHostsOf(settings), managedDomain: settings.managedDomain },
  })
  const deps = {
    ...{ db, clock, log, secretBox, authority: acme, names, stop: stop.signal },
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
