// The composition root: builds the parts that the roles need, hands them to each other, starts, drains and stops them.
import { randomUUID } from 'node:crypto'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import ipaddr from 'ipaddr.js'
import { readAddressListFiles } from './address-list-files.ts'
import { createAddressGuard, createEventStreams, startWebhooks } from './announcing.ts'
import { DiskReserve } from './base/disk-reserve.ts'
import { leaveMark, type NodeMark } from './blobs/node-marks.ts'
import type { Role, Settings } from './config.ts'
import { claimFolder, requireSharedBlobs } from './data-folder.ts'
import { reachable, startCapture, startDelivery } from './delivering.ts'
import { HopsInTime } from './dns/hops-in-time.ts'
import { HopFinder, type Hops } from './dns/mx.ts'
import { Resolver } from './dns/resolver.ts'
import { Acceptance } from './flow/accept-send.ts'
import { KeyRing, RequestRate } from './flow/authenticate.ts'
import { isOwnName } from './flow/own-name.ts'
import { ProvedDomains } from './flow/proved-domains.ts'
import { Receiver } from './flow/receive.ts'
import { SendContents } from './flow/send-contents.ts'
import { Validation } from './flow/validate.ts'
import type { Foundation } from './foundation.ts'
import { createHttpServer } from './http/server.ts'
import { startJobs } from './jobs.ts'
import { ParsePool } from './mail/parse-pool.ts'
import { createOperatorServer } from './operator/server.ts'
import type { ListenAddress } from './setting-values.ts'
import { filesContext, selfSignedContext } from './smtp/certificate.ts'
import { SmtpServer } from './smtp/server.ts'
import { listFormerDomains } from './store/inboxes.ts'
import { Membership } from './worker/membership.ts'

/** Where the service listens; null where the role is not run here. */
export interface Listening {
  http: ListenAddress | null
  operator: ListenAddress
  smtp: ListenAddress | null
}

export interface App {
  listening: Listening
  /** Drains: takes no new work, lets what is on the wire end or hands it back; at most about 25 s. */
  stop(): Promise<void>
}

/** A part that runs; parts stop in the reverse order of their start. */
interface Part {
  stop(): Promise<void>
}

const graceMs = 20_000

/** Starts the roles of this node. */
export async function startApp(foundation: Foundation, roles: readonly Role[]): Promise<App> {
  const { settings, db } = foundation
  const parts: Part[] = []
  const wakes: Wakes = { delivery: () => {}, filing: () => {}, telling: () => {} }
  const mx: Mx = { isSaturated: () => false }
  let draining = false
  const stop = async () => {
    draining = true
    for (const part of parts.reverse().splice(0)) await part.stop()
  }
  try {
    const { number, release } = await claimFolder(db, settings.dataDir)
    parts.push({ stop: release })
    await requireSharedBlobs(db, settings.blobFolder, number)
    await warnOfFormerDomains(foundation)
    const operator = createOperatorServer({ db, clock: foundation.clock, isDraining: () => draining })
    const listening: Listening = {
      http: null,
      smtp: null,
      operator: await listen(operator, settings.operator),
    }
    parts.push({ stop: () => close(operator) })
    const membership = await startMembership(foundation, number)
    parts.push(membership)
    // Once more, for those that start together: the later one of two finds the other before it has taken anything.
    await requireSharedBlobs(db, settings.blobFolder, number)
    if (roles.includes('jobs')) parts.push(startJobs(foundation, wakes, mx))
    if (roles.includes('mx')) listening.smtp = await startMx(foundation, wakes, mx, parts)
    const sends = roles.includes('delivery')
    const capture = sends && settings.delivery === 'capture' ? await startCapture(foundation, parts) : null
    await announce(membership, { smtp: listening.smtp, capture })
    // The others stop to find this node before it stops to listen.
    parts.push(membership)
    if (sends) parts.push(await startDelivery(foundation, wakes, membership))
    if (roles.includes('webhooks')) parts.push(await startWebhooks(foundation, wakes, membership))
    if (roles.includes('api')) listening.http = await startApi(foundation, wakes, parts)
    return { listening, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Null where the folder takes no file, as on a full disk: that hinders no start, and others cannot look for it. */
async function markBlobs({ settings, log }: Foundation, folder: number): Promise<NodeMark | null> {
  const mark = { folder, word: randomUUID() }
  try {
    await leaveMark(settings.blobFolder, mark)
    return mark
  } catch (error) {
    log.warn({ err: error }, 'this node cannot mark the blob folder, by which others see that they share it')
    return null
  }
}

/** Their mail is refused, and they may not send: their owners see it, and the operator may not know why. */
async function warnOfFormerDomains({ settings: { managedDomain }, db, log }: Foundation): Promise<void> {
  for (const { domain, inboxes } of await listFormerDomains(db, managedDomain))
    log.warn(
      { domain, inboxes },
      `${inboxes} inboxes are on ${domain}, which is not received for: ${formerMend}`,
    )
}

/** What to do about inboxes on a managed domain of before. */
export const formerMend = 'set POSTHORN_MANAGED_DOMAIN back to it, or have them deleted'

/** Who is to look for work on this node; nobody, where its role is not run here. */
interface Wakes {
  delivery(routes: string[]): void
  filing(): void
  telling(): void
}

/** What the mail server of this node has to say of itself; nothing, where its role is not run here. */
interface Mx {
  isSaturated(): boolean
}

function isLocal({ managedDomain }: Settings): (domain: string) => boolean {
  return (domain) => domain === managedDomain
}

async function startMx(foundation: Foundation, wakes: Wakes, mx: Mx, parts: Part[]): Promise<ListenAddress> {
  const { settings, db, clock, log, blobs, secretBox } = foundation
  const hostname = settings.mailHost
  const disk = new DiskReserve({
    folders: writtenFolders(settings),
    reserveBytes: settings.diskReserveBytes,
    log,
  })
  await disk.start()
  parts.push(disk)
  const receiver = new Receiver({
    disk,
    db,
    clock,
    log,
    blobs,
    secretBox,
    hostname,
    isLocal: isLocal(settings),
    domains: new ProvedDomains({ db, clock }),
    wake: () => wakes.filing(),
  })
  mx.isSaturated = () => receiver.isSaturated()
  const secureContext = settings.smtpTls
    ? filesContext(settings.smtpTls, log)
    : await selfSignedContext(hostname)
  const server = new SmtpServer({
    hostname,
    listen: settings.smtp,
    maxSizeBytes: settings.smtpMaxSizeBytes,
    maxRecipients: 100,
    secureContext,
    isTrusted: inRanges(settings.smtpTrusted),
    isOwn: (name) => isOwnName(secretBox, hostname, name, clock.now()),
    clock,
    log,
    backend: receiver,
  })
  const address = await server.listen()
  parts.push({
    stop: async () => {
      await server.close(graceMs)
      await receiver.drained()
    },
  })
  return address
}

/** Where received mail takes room on disks of ours. */
function writtenFolders({ blobFolder, dataDir, databaseUrl }: Settings): string[] {
  return databaseUrl ? [blobFolder] : [blobFolder, dataDir]
}

/** Makes this node known to the others, by its mark among the blobs; it takes no mail yet. */
async function startMembership(foundation: Foundation, folder: number): Promise<Membership> {
  const { db, clock, log } = foundation
  const membership = new Membership({ db, clock, log, mark: await markBlobs(foundation, folder) })
  await membership.start()
  return membership
}

/** So that those that send find those that take mail, whatever roles each of them has. */
async function announce(
  membership: Membership,
  { smtp, capture }: { smtp: ListenAddress | null; capture: ListenAddress | null },
): Promise<void> {
  await membership.announce({
    smtp: smtp && formatAddress(smtp),
    capture: capture && formatAddress(capture),
  })
}

async function startApi(foundation: Foundation, wakes: Wakes, parts: Part[]): Promise<ListenAddress> {
  const { settings, db, clock, log, blobs, secretBox } = foundation
  // Of its own: what is sent through the API must not wait for received mail, nor that for it.
  const parsePool = new ParsePool({ threads: 1, timeoutMs: 10_000 })
  const acceptance = new Acceptance({
    db,
    clock,
    log,
    blobs,
    domains: new ProvedDomains({ db, clock }),
    lifetimeMs: settings.retryLifetimeMs,
    contents: new SendContents({ db, clock, parsePool }),
    routePolicy: { mode: settings.delivery, isLocal: isLocal(settings) },
    wake: (routes) => {
      wakes.delivery(routes)
      wakes.telling()
    },
  })
  const eventStreams = createEventStreams(foundation)
  const server = createHttpServer({
    db,
    clock,
    log,
    secretBox,
    blobs,
    acceptance,
    validation: await createValidation(foundation),
    resolver: new Resolver({ servers: settings.dnsServers }),
    eventStreams,
    addressGuard: createAddressGuard(settings),
    keyRing: new KeyRing({ db, clock }),
    requestRate: new RequestRate({ db, clock }),
    settings: {
      publicUrl:
        settings.publicUrl ?? (settings.http.port > 0 ? `http://${formatAddress(settings.http)}` : ''),
      managedDomain: settings.managedDomain,
      mailHost: settings.mailHost,
      trustedProxies: settings.trustedProxies,
      maxDownloadBytes: settings.maxDownloadBytes,
      bodyMemoryBytes: settings.httpMemoryBytes,
    },
  })
  await server.listen(settings.http)
  parts.push({
    stop: async () => {
      await eventStreams.stop()
      // Those that idle at the close are ended by it; one that is answered later would be kept for further requests.
      const ending = setInterval(() => server.server.closeIdleConnections(), 100)
      await Promise.race([server.close(), afterGrace()])
      clearInterval(ending)
      await acceptance.drained()
      await parsePool.close()
    },
  })
  const { address, port } = server.server.address() as AddressInfo
  return { host: address, port }
}

/** Validation asks with less patience than delivery: somebody waits for the answer. */
async function createValidation({ settings, db, clock }: Foundation): Promise<Validation> {
  const resolver = new Resolver({ servers: settings.dnsServers, timeoutMs: 1_000 })
  // Callers choose the names: few questions for each.
  const bounds = { deadlineMs: 5_000, maxNames: 20 }
  const hopFinder = new HopFinder({ resolver, isAllowed: reachable(settings), clock, ...bounds })
  const listChanges = await readAddressListFiles(settings.dataDir)
  const hopsInTime = new HopsInTime({ hopFinder: ownFirst(settings, hopFinder), clock })
  return new Validation({ db, hopsInTime, listChanges })
}

/** Mail for the managed domain goes to our own mail server without a look-up; so its addresses are judged without one. */
function ownFirst(settings: Settings, hopFinder: HopFinder): Pick<HopFinder, 'find' | 'recall'> {
  const own: Hops = { status: 'ok', hosts: [{ name: settings.mailHost, preference: 0, addresses: [] }] }
  const isOwn = isLocal(settings)
  return {
    find: (domain) => hopFinder.find(domain),
    recall: (domain) => (isOwn(domain) ? own : hopFinder.recall(domain)),
  }
}

/** Resolves when nothing more is waited for; does not keep the service alive. */
function afterGrace(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, graceMs).unref())
}

async function listen(server: Server, { host, port }: ListenAddress): Promise<ListenAddress> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const bound = server.address() as AddressInfo
  return { host: bound.address, port: bound.port }
}

function close(server: Server): Promise<void> {
  server.closeAllConnections()
  return new Promise((resolve) => server.close(() => resolve()))
}

/** `127.0.0.1:25` or `[::1]:25`. */
export function formatAddress({ host, port }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

function inRanges(cidrs: string[]): (address: string) => boolean {
  const ranges = cidrs.map((cidr) => ipaddr.parseCIDR(cidr))
  return (address) => {
    const ip = ipaddr.process(address)
    return ranges.some((range) => ip.kind() === range[0].kind() && ip.match(range))
  }
}
