// The roles api and dashboard of a node: the public API over HTTP with its live stream and validation, and the web pages.
import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'
import { divided } from '../base/share.ts'
import { readAddressListFiles } from '../config/address-list-files.ts'
import { listenAs } from '../config/listener.ts'
import { formatAddress, type ListenAddress, reachable } from '../config/setting-values.ts'
import type { Role, Settings } from '../config/settings.ts'
import { HopsInTime } from '../dns/hops-in-time.ts'
import { HopFinder, type Hops } from '../dns/mx.ts'
import { KeyRing, RequestRate } from '../flow/accounts/authenticate.ts'
import { ProvedDomains } from '../flow/proved-domains.ts'
import { InboxSearches } from '../flow/searching/search-inbox.ts'
import { Acceptance } from '../flow/sending/accept-send.ts'
import type { SendCache } from '../flow/sending/send-cache.ts'
import { SendContents } from '../flow/sending/send-contents.ts'
import { Validation } from '../flow/validation/validate.ts'
import type { Foundation } from '../foundation.ts'
import type { Api } from '../http/api.ts'
import { OpenConnections } from '../http/connections.ts'
import { createHttpsServer } from '../http/https.ts'
import { createHttpServer, type ServerDeps } from '../http/server.ts'
import { MessageWaits } from '../http/stream/message-waits.ts'
import { ParsePool } from '../mail/parse-pool.ts'
import type { DueWork } from '../worker/due-work.ts'
import type { Certificate } from './certificate.ts'
import { createDashboard, startOrganizationLetters } from './dashboard.ts'
import { allowsMailTo, createRoutePolicy, graceMs, isLocal, type Part } from './part.ts'
import type { Signals } from './signals.ts'
import { startSubmission } from './submission.ts'
import { createAddressGuard, createEventStreams } from './webhooks.ts'

type ApiSignals = Pick<Signals, 'grown' | 'announced' | 'streams' | 'waits'>

/** A quarter of it holds the largest body of an organization with the usual limits. */
const leastBodyBytes = 64 << 20

interface ApiNeeds {
  signals: ApiSignals
  /** Signals that these queues have new mail. */
  wakeQueues(routes: string[]): void
  roles: readonly Role[]
  sendCache: SendCache
  operator: ListenAddress
  dueWork: DueWork
}

/** Returns the listening addresses. */
export async function startApi(
  foundation: Foundation,
  certificate: Certificate,
  { signals, wakeQueues, roles, sendCache, operator, dueWork }: ApiNeeds,
  parts: Part[],
): Promise<Record<'http' | 'https' | 'submission' | 'submissions', ListenAddress | null>> {
  const { settings, db, clock, log, blobs, secretBox } = foundation
  // Separate from received mail, so that neither waits for the other.
  const parsePool = new ParsePool({ threads: 1, timeoutMs: 10_000 })
  // Separate again: sending must not wait for mail that people view in a browser or search for the first time.
  const pagePool = new ParsePool({ threads: 1, timeoutMs: 10_000 })
  const domains = new ProvedDomains({ db, clock })
  const contents = new SendContents({ db, clock, blobs, parsePool })
  const acceptance = createAcceptance(foundation, { domains, contents, sendCache, signals, wakeQueues })
  const keyRing = roles.includes('api') ? new KeyRing({ db, clock }) : null
  const requestRate = new RequestRate({ db, clock })
  const { workers } = settings
  const { grown, waits: changed } = signals
  const messageWaits = new MessageWaits({ db, clock, log, workers, grown, changed })
  const inboxSearches = new InboxSearches({ db, clock, log, workers, parsePool: pagePool })
  const eventStreams = createEventStreams(foundation, certificate, signals)
  const dashboard = roles.includes('dashboard') ? createDashboard(foundation, acceptance, pagePool) : null
  const publicUrl = publicUrlOf(settings)
  const server = createHttpServer({
    db,
    clock,
    log,
    secretBox,
    blobs,
    acceptance,
    validation: await createValidation(foundation),
    resolver: foundation.resolver.for('domain checks'),
    eventStreams,
    messageWaits,
    inboxSearches,
    addressGuard: createAddressGuard(settings),
    keyRing,
    dashboard,
    requestRate,
    domains,
    mtaStsMode: certificate.mtaStsMode,
    wrote: () => signals.announced(),
    settings: serverSettings(settings, publicUrl),
  })
  const listeners = await listenWith(server, foundation, certificate)
  const readers = [messageWaits, eventStreams, inboxSearches]
  parts.push({ stop: () => stopServing(listeners, readers, acceptance, [parsePool, pagePool]) })
  if (dashboard) {
    const pages = publicUrl || `http://${formatAddress(reachable(listeners.addresses.http))}`
    parts.push(startOrganizationLetters(foundation, dueWork, dashboard.post, { pages, operator }))
  }
  const submission = keyRing
    ? await startSubmission(foundation, certificate, { acceptance, contents, keyRing, requestRate }, parts)
    : { submission: null, submissions: null }
  return { ...listeners.addresses, ...submission }
}

async function stopServing(
  listeners: Listeners,
  readers: readonly { stop(): Promise<void> }[],
  acceptance: Acceptance,
  pools: readonly ParsePool[],
): Promise<void> {
  await Promise.all(readers.map((reader) => reader.stop()))
  // `close` ends idle connections only once. A connection answered later would stay open for further requests.
  const ending = setInterval(() => listeners.endIdle(), 100)
  await Promise.race([listeners.close(), afterGrace()])
  clearInterval(ending)
  await acceptance.drained()
  await Promise.all(pools.map((pool) => pool.close()))
}

interface AcceptanceNeeds {
  domains: ProvedDomains
  contents: SendContents
  sendCache: SendCache
  signals: ApiSignals
  wakeQueues(routes: string[]): void
}

function createAcceptance(
  foundation: Foundation,
  { domains, contents, sendCache, signals, wakeQueues }: AcceptanceNeeds,
): Acceptance {
  const { settings, db, clock, log, blobs } = foundation
  return new Acceptance({
    db,
    clock,
    log,
    blobs,
    domains,
    lifetimeMs: settings.retryLifetimeMs,
    contents,
    sendCache,
    routePolicy: createRoutePolicy(foundation),
    accepted: ({ routes, inboxId }) => {
      wakeQueues(routes)
      signals.announced(inboxId ? [inboxId] : [])
    },
  })
}

function serverSettings(settings: Settings, publicUrl: string): ServerDeps['settings'] {
  return {
    publicUrl,
    managedDomain: settings.managedDomain,
    mailHost: settings.mailHost,
    trustedProxies: settings.trustedProxies,
    isHttpsOn: settings.https !== null,
    hasAcme: settings.acme !== null,
    maxDownloadBytes: settings.maxDownloadBytes,
    bodyMemoryBytes: divided(settings.httpMemoryBytes, settings.workers, leastBodyBytes),
  }
}

/** Empty if the URL is unknown until the listener is open. */
function publicUrlOf({ publicUrl, http }: Foundation['settings']): string {
  return publicUrl ?? (http.port > 0 ? `http://${formatAddress(http)}` : '')
}

interface Listeners {
  addresses: { http: ListenAddress; https: ListenAddress | null }
  endIdle(): void
  /** Resolves when every request under way is answered. */
  close(): Promise<void>
}

/** Listens over plain HTTP and, if configured, over HTTPS, with one bound on the connections of both. */
async function listenWith(
  api: Api,
  { settings: { http, https, trustedProxies }, worker }: Foundation,
  certificate: Certificate,
): Promise<Listeners> {
  const networks = worker.group?.networks
  const connections = new OpenConnections({ trustedProxies, ...(networks && { networks }) })
  connections.bound(api.server)
  await listenAs('POSTHORN_HTTP', http, () => api.listen(http))
  const safe = https && createHttpsServer(api, certificate.pair)
  if (safe) {
    connections.bound(safe)
    safe.listen(https.port, https.host)
    await listenAs('POSTHORN_HTTPS', https, () => once(safe, 'listening')).catch(async (error) => {
      await api.close()
      throw error
    })
  }
  return {
    addresses: { http: addressOf(api.server), https: safe && addressOf(safe) },
    endIdle: () => {
      api.server.closeIdleConnections()
      safe?.closeIdleConnections()
      connections.endUnasked()
    },
    close: async () => {
      await Promise.all([api.close(), safe && new Promise((resolve) => safe.close(resolve))])
    },
  }
}

function addressOf(server: Server): ListenAddress {
  const { address, port } = server.address() as AddressInfo
  return { host: address, port }
}

/** Validation gives up sooner than delivery, because a caller waits for the answer. */
async function createValidation({
  settings,
  db,
  clock,
  worker,
  resolver: shared,
}: Foundation): Promise<Validation> {
  const resolver = shared.for('validation')
  const haste = { deadlineMs: 5_000, timeoutMs: 1_000 }
  const hopFinder = new HopFinder({ resolver, isAllowed: allowsMailTo(settings), clock, ...haste })
  const listChanges = await readAddressListFiles(settings.dataDir)
  const { workers } = settings
  const minutes = worker.group?.lookups
  const hopsInTime = new HopsInTime({
    hopFinder: ownFirst(settings, hopFinder),
    clock,
    workers,
    ...(minutes && { minutes }),
  })
  return new Validation({ db, hopsInTime, listChanges })
}

/** Mail for the managed domain goes to our own mail server. Neither delivery nor validation looks it up. */
function ownFirst(settings: Settings, hopFinder: HopFinder): Pick<HopFinder, 'find' | 'recall'> {
  const ownHost = { name: settings.mailHost, preference: 0, addresses: [], dane: null }
  const own: Hops = { status: 'ok', hosts: [ownHost] }
  const isOwn = isLocal(settings)
  return {
    find: (domain, asking) => hopFinder.find(domain, asking),
    recall: (domain) => (isOwn(domain) ? own : hopFinder.recall(domain)),
  }
}

/** Resolves after the grace period. Does not keep the process alive. */
function afterGrace(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, graceMs).unref())
}
