// The delivery role of a node, and the capture server of development.

import type { Clock } from '../base/clock.ts'
import { StartRefused } from '../base/errors.ts'
import { tryListening } from '../config/listener.ts'
import type { ListenAddress } from '../config/setting-values.ts'
import type { Role, Settings } from '../config/settings.ts'
import { type CourierDeps, RouteCourier } from '../flow/delivering/courier.ts'
import { DeliveryResults } from '../flow/delivering/delivery-results.ts'
import { SendingIdentities } from '../flow/delivering/sending-identity.ts'
import { Shaper } from '../flow/delivering/shaper.ts'
import { loadSigningKeys } from '../flow/domains/managed-keys.ts'
import { ProvedDomains } from '../flow/proved-domains.ts'
import { Capture } from '../flow/receiving/capture.ts'
import { moveDeliveries, retryScheduleOf, specialRoutes, withWishes } from '../flow/route-policy.ts'
import type { SendCache } from '../flow/sending/send-cache.ts'
import type { SourcePool } from '../flow/source-pools.ts'
import type { Foundation } from '../foundation.ts'
import { SmtpServer } from '../smtp/server/server.ts'
import { routesDue } from '../store/sending/routes.ts'
import { DueRoutes } from '../worker/due-routes.ts'
import type { DueWork } from '../worker/due-work.ts'
import { LeaseHolder } from '../worker/lease-holder.ts'
import { Loop } from '../worker/loop.ts'
import type { Membership } from '../worker/membership.ts'
import { createMtaSts } from './mta-sts.ts'
import { createNextHop } from './next-hop.ts'
import { createMailCache, graceMs, type Part } from './part.ts'
import type { Signals } from './signals.ts'
import { startTlsSessions } from './tls-reports.ts'

/** Measured: reading 100 KB back from the database takes 1 ms of CPU. */
const maxCached = { maxEntries: 20_000, maxBytes: 16 << 20 }

/** Keeps accepted mail in memory only if this node delivers it. */
export function createSendCache(roles: readonly Role[], workers: number, clock: Clock): SendCache {
  if (!roles.includes('delivery')) return undefined
  return createMailCache({ ...maxCached, workers, clock })
}

/** A running part that owns queues. `wake` signals that they have work, `wakeHeld` only those that this node owns. */
export interface Delivery extends Part {
  wake(routes: readonly string[]): void
  wakeHeld(routes: readonly string[]): void
}

/** Starts to own destination queues. */
export async function startDelivery(
  foundation: Foundation,
  signals: Pick<Signals, 'announced'>,
  { membership, dueWork }: { membership: Membership; dueWork: DueWork },
  sendCache: SendCache,
): Promise<Delivery> {
  const { settings, db, clock, log, blobs, secretBox, hold } = foundation
  await requireOutbound(settings)
  const pools = await findOwnSources(foundation)
  const shaping = await startShaping(foundation, membership, pools)
  const mtaSts = createMtaSts(foundation)
  const tlsSessions = startTlsSessions(foundation)
  const deps: CourierDeps = {
    db,
    clock,
    log,
    blobs,
    secretBox,
    hostname: settings.mailHost,
    publicUrl: settings.publicUrl,
    results: new DeliveryResults({ db, clock, log, wake: () => signals.announced() }),
    sendCache,
    shaper: shaping.shaper,
    identities: await createIdentities(foundation),
    retryScheduleMs: settings.retryScheduleMs,
    nextHop: {
      ...createNextHop(foundation, membership.nodeId),
      pools,
      tlsRules: mtaSts.rules,
      ...(tlsSessions && { noteTls: tlsSessions.note }),
    },
  }
  const due = new DueRoutes({
    retryScheduleOf: (route) => retryScheduleOf(route, settings.retryScheduleMs),
    verbsFor: (route, mayFinish, organizationId) => new RouteCourier(deps, route, mayFinish, organizationId),
    ownRoutes: special,
    workers: settings.workers,
    // In a restored copy, waiting mail stays where it is, so that it is not lost when the copy replaces the original.
    isHeldBack: (route) => hold !== null && !inside.includes(route),
  })
  const routes = new LeaseHolder({ db, clock, log, membership, source: due })
  const move = async () =>
    (await moveDeliveries({ db, clock }, settings.delivery, settings.managedDomain)) > 0
  const moving = new Loop({ name: 'move to routes', run: move, intervalMs: 60_000, log })
  routes.start()
  dueWork.watch(routesDue, () => routes.poll())
  if (!hold) moving.start()
  return {
    wake: (keys) => routes.wake(keys),
    wakeHeld: (keys) => routes.wakeHeld(keys),
    stop: async () => {
      await moving.stop()
      await routes.stop(graceMs)
      await shaping.stop()
      await mtaSts.stop()
      await tlsSessions?.stop()
    },
  }
}

const sharingMs = 3_000

/** Starts to store the limits of destinations, and to share them with the other nodes. */
async function startShaping(
  { db, clock, log, deliveryRules }: Foundation,
  membership: Membership,
  pools: readonly SourcePool[],
): Promise<Part & { shaper: Shaper }> {
  const shaper = new Shaper({ db, clock, log, rules: deliveryRules(), pools, node: membership })
  const run = async () => {
    await shaper.synchronize()
    return false
  }
  const sharing = new Loop({ name: 'share destination limits', run, intervalMs: sharingMs, log })
  sharing.start()
  return {
    shaper,
    stop: async () => {
      await sharing.stop()
      // Without a database, the changes since the last run are lost, as after a crash.
      await shaper.stop().catch(() => {})
    },
  }
}

/** Refuses to start if a chosen address is not on this machine: mail must not leave by another address. */
async function requireOutbound({ outbound: { ipv4, ipv6 } }: Settings): Promise<void> {
  for (const host of [ipv4, ipv6]) {
    const code = host === null ? null : await tryListening({ host, port: 0 })
    if (code !== null)
      throw new StartRefused(
        'outbound address',
        `POSTHORN_OUTBOUND_IP: ${host} is not an address of this machine (${code})`,
        'set it to an address of this machine',
      )
  }
}

/**
 * Returns the pools with those of their sources that this machine has: nodes on several machines share the file. Refuses to
 * start if a pool has none, as its mail must not leave from another address.
 */
async function findOwnSources({ settings, deliveryRules, log }: Foundation): Promise<SourcePool[]> {
  if (settings.delivery !== 'direct') return []
  const pools: SourcePool[] = []
  for (const pool of deliveryRules().pools) {
    const codes = await Promise.all(
      pool.sources.map(({ address }) => tryListening({ host: address, port: 0 })),
    )
    const sources = pool.sources.filter((_, index) => codes[index] === null)
    if (sources.length === 0)
      throw new StartRefused(
        'outbound address',
        `POSTHORN_DELIVERY_FILE: no source of the pool ${pool.name} is an address of this machine (${codes[0]})`,
        'add one of its addresses to this machine, or correct the file',
      )
    for (const { address } of pool.sources.filter((source) => !sources.includes(source)))
      log.warn({ pool: pool.name, address }, 'source is not an address of this machine: it is left out')
    pools.push({ ...pool, sources })
  }
  return pools
}

async function createIdentities(foundation: Foundation): Promise<SendingIdentities> {
  const { settings, db, clock, log, secretBox } = foundation
  const { managedDomain } = settings
  // The first start makes the keys, and every start opens them. Without them the managed domain could send nothing.
  await loadSigningKeys(foundation, managedDomain)
  const domains = new ProvedDomains({ db, clock })
  return new SendingIdentities({ db, clock, log, secretBox, domains, managedDomain })
}

const special = Object.values(specialRoutes).flatMap(withWishes)
/** Routes whose mail does not leave this deployment. */
const inside = [specialRoutes.local, specialRoutes.capture].flatMap(withWishes)

/** Starts a server that keeps the mail that would leave this machine. */
export async function startCapture(
  { settings, db, clock, log, blobs }: Foundation,
  parts: { stop(): Promise<void> }[],
): Promise<ListenAddress> {
  const server = new SmtpServer({
    hostname: settings.mailHost,
    listen: { host: '127.0.0.1', port: 0 },
    maxSizeBytes: 64 << 20,
    maxRecipients: 1000,
    secureContext: () => null,
    isTrusted: () => true,
    clock,
    log,
    backend: new Capture({ db, clock, blobs }),
  })
  const address = await server.listen()
  parts.push({ stop: () => server.close(graceMs) })
  return address
}
