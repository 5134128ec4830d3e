// Sends events to customers: the webhooks role of a node, and the live stream of its API.
import type { Settings } from '../config/settings.ts'
import { findAddressRecords } from '../dns/host-addresses.ts'
import { isPublicUnicast } from '../dns/public-address.ts'
import type { Resolver } from '../dns/resolver.ts'
import { viewOneDomain } from '../flow/domains/domain-view.ts'
import { Notifier } from '../flow/events/notify.ts'
import { announcedPurgeDue, purgeAnnounced, restoreOutbox } from '../flow/events/purge-outbox.ts'
import type { Presenters } from '../flow/events/write-announcements.ts'
import type { Foundation } from '../foundation.ts'
import { presentEvent, presentMessage, presentSubmission } from '../http/present.ts'
import { EventStreams } from '../http/stream/event-streams.ts'
import { findDomain } from '../store/domains/domains.ts'
import { webhooksDue } from '../store/events/webhooks.ts'
import { AddressGuard } from '../webhook/address-guard.ts'
import { CallFault } from '../webhook/connect.ts'
import { Poster } from '../webhook/post.ts'
import { DueEndpoints } from '../worker/due-endpoints.ts'
import type { DueWork } from '../worker/due-work.ts'
import { createFanOut } from '../worker/fan-out.ts'
import { LeaseHolder } from '../worker/lease-holder.ts'
import type { Membership } from '../worker/membership.ts'
import type { Wakes } from '../worker/wakes.ts'
import type { Certificate } from './certificate.ts'
import type { Part } from './part.ts'
import type { Signals } from './signals.ts'

type DomainPolicy = Pick<Certificate, 'mtaStsMode'>

/** How long calls may still take when the node stops. Calls cut off then are repeated with the same id. */
const graceMs = 5_000

export function createAddressGuard({ allowPrivateNetworks, isDevelopment }: Settings): AddressGuard {
  return new AddressGuard({ isPublic: isPublicUnicast, allowPrivateNetworks, isDevelopment })
}

export function createEventStreams(
  foundation: Foundation,
  certificate: DomainPolicy,
  { streams }: Pick<Signals, 'streams'>,
): EventStreams {
  const { db, clock, log, settings } = foundation
  const present = presenters(foundation, certificate)
  return new EventStreams({ db, clock, log, workers: settings.workers, present, announced: streams })
}

/** Events show their objects in the form of the API. */
function presenters({ db, settings }: Foundation, { mtaStsMode }: DomainPolicy): Presenters {
  return {
    message: presentMessage,
    submission: presentSubmission,
    event: presentEvent,
    domain: async (organizationId, id) => {
      const row = await findDomain(db, organizationId, id)
      return row && (await viewOneDomain(db, { mailHost: settings.mailHost, mtaStsMode }, row))
    },
  }
}

export async function startWebhooks(
  foundation: Foundation,
  certificate: DomainPolicy,
  { fanOut: signal }: Pick<Signals, 'fanOut'>,
  { membership, wakes, dueWork }: { membership: Membership; wakes: Wakes; dueWork: DueWork },
): Promise<Part & { wakeHeld(webhooks: readonly string[]): void }> {
  const { settings, db, clock, log, secretBox, hold } = foundation
  if (await restoreOutbox({ db })) log.info('outbox renumbered after a restore')
  const poster = createPoster(foundation)
  const notifier = new Notifier({
    db,
    clock,
    log,
    secretBox,
    poster,
    present: presenters(foundation, certificate),
    retryScheduleMs: settings.webhookRetryScheduleMs,
  })
  const due = new DueEndpoints(notifier.verbsFor.bind(notifier), settings.workers)
  const endpoints = new LeaseHolder({ db, clock, log, membership, source: due })
  const onDeliveries = (webhooks: string[]) => {
    endpoints.wake(webhooks)
    wakes.send({ webhooks })
  }
  const fanOut = createFanOut({ db, clock, log, dueWork, signal, onDeliveries })
  const purged = { last: null }
  const purge = () => purgeAnnounced({ db, clock }, purged)
  const purging = dueWork.createLoop(announcedPurgeDue, { name: 'purge announced', run: purge })
  // In a restored copy calls wait until it is released.
  if (!hold) {
    endpoints.start()
    dueWork.watch(webhooksDue, () => endpoints.poll())
  }
  fanOut.start()
  purging.start()
  const stop = async () => {
    await Promise.all([fanOut.stop(), purging.stop(), endpoints.stop(graceMs)])
    await notifier.drained()
    await poster.close()
  }
  return { stop, wakeHeld: (webhooks) => endpoints.wakeHeld(webhooks) }
}

/** A client for URLs of strangers. */
export function createPoster({ settings, resolver: shared }: Foundation): Poster {
  const resolver = shared.for('webhooks')
  return new Poster({ guard: createAddressGuard(settings), lookup: (host) => findAddresses(resolver, host) })
}

/** The addresses of a host that is called. Rejects with words for people if there are none. */
export async function findAddresses(resolver: Pick<Resolver, 'resolve'>, host: string): Promise<string[]> {
  const { records, temporaryReason } = await findAddressRecords(resolver, host)
  if (records.length === 0) throw new CallFault(temporaryReason ?? 'the host has no address')
  return records.map(({ address }) => address)
}
