// The mx role of a node: takes mail from the world.

import type { Clock } from '../base/clock.ts'
import { inRanges } from '../base/ip-address.ts'
import type { RecentlyUsed } from '../base/recently-used.ts'
import { DiskReserve } from '../blobs/disk-reserve.ts'
import { listenAs } from '../config/listener.ts'
import type { ListenAddress } from '../config/setting-values.ts'
import type { Role, Settings } from '../config/settings.ts'
import { ProvedDomains } from '../flow/proved-domains.ts'
import { isOwnName } from '../flow/receiving/own-name.ts'
import { Receiver } from '../flow/receiving/receive.ts'
import { SenderChecks } from '../flow/receiving/sender-checks.ts'
import type { Foundation } from '../foundation.ts'
import { Blocklists } from '../mailauth/blocklists.ts'
import type { Rspamd, RspamdAddress, RspamdOptions } from '../scan/rspamd.ts'
import { SmtpServer } from '../smtp/server/server.ts'
import type { SmtpServerOptions } from '../smtp/server/server-options.ts'
import type { Certificate } from './certificate.ts'
import { startDmarcNotes } from './dmarc-reports.ts'
import { createMailCache, graceMs, isLocal, type Part } from './part.ts'
import type { Signals } from './signals.ts'

/** Measured: reading 100 KB back from the database, as hexadecimal digits, takes 4 ms of CPU. */
const maxCached = { maxEntries: 20_000, maxBytes: 64 << 20 }

/** Received messages by the id of the raw row, kept until this node has filed them, or for a minute. */
export type RawCache = RecentlyUsed<Buffer> | undefined

/** Keeps received messages in memory only if this node files them. */
export function createRawCache(roles: readonly Role[], workers: number, clock: Clock): RawCache {
  if (!roles.includes('mx') || !roles.includes('jobs')) return undefined
  return createMailCache({ ...maxCached, workers, clock })
}

/** Returns the listening address. */
export async function startMx(
  foundation: Foundation,
  certificate: Certificate,
  signals: Pick<Signals, 'received'>,
  rawCache: RawCache,
  parts: Part[],
): Promise<ListenAddress> {
  const { settings, clock, log, blobs, secretBox, dnsCache, worker } = foundation
  const { workers } = settings
  const hostname = settings.mailHost
  const rspamd = settings.rspamd && (await openRspamd(settings.rspamd, { log, mtaName: hostname, workers }))
  const disk = new DiskReserve({
    folders: writtenFolders(settings),
    reserveBytes: settings.diskReserveBytes,
    log,
  })
  await disk.start()
  parts.push(disk)
  const isTrusted = inRanges(settings.smtpTrusted)
  const senderChecks = new SenderChecks({
    dns: dnsCache,
    clock,
    blobs,
    hostname,
    rspamd,
    arcTrusted: settings.arcTrusted,
    dmarc: settings.dmarc,
    noteDmarc: startDmarcNotes(foundation, isTrusted, parts),
  })
  const receiver = createReceiver(foundation, { disk, isTrusted, senderChecks, signals, rawCache })
  const server = new SmtpServer({
    hostname,
    listen: settings.smtp,
    maxSizeBytes: settings.smtpMaxSizeBytes,
    maxRecipients: 100,
    secureContext: () => certificate.context(),
    isTrusted,
    isOwn: (name) => isOwnName(secretBox, hostname, name, clock.now()),
    ...askingLists(foundation),
    ...(worker.group && { peers: worker.group.peers.mx }),
    clock,
    log,
    backend: receiver,
  })
  const address = await listenAs('POSTHORN_SMTP', settings.smtp, () => server.listen())
  parts.push({
    stop: async () => {
      await server.close(graceMs)
      await receiver.drained()
      await rspamd?.close()
    },
  })
  return address
}

/** Loads the client only where Rspamd is used. */
async function openRspamd(address: RspamdAddress, options: RspamdOptions): Promise<Rspamd> {
  const { Rspamd } = await import('../scan/rspamd.ts')
  return new Rspamd(address, options)
}

interface ReceiverParts {
  disk: DiskReserve
  isTrusted(address: string): boolean
  senderChecks: SenderChecks
  signals: Pick<Signals, 'received'>
  rawCache: RawCache
}

function createReceiver(
  { settings, db, clock, log, blobs, secretBox }: Foundation,
  { signals, ...parts }: ReceiverParts,
): Receiver {
  return new Receiver({
    ...parts,
    db,
    clock,
    log,
    blobs,
    secretBox,
    hostname: settings.mailHost,
    isLocal: isLocal(settings),
    domains: new ProvedDomains({ db, clock }),
    wake: () => signals.received(),
  })
}

/** Our folders whose disks received mail fills. */
function writtenFolders({ blobStore, dataDir, databaseUrl }: Settings): string[] {
  // Bytes on their way to S3 pass through the data folder.
  if (!('folder' in blobStore)) return [dataDir]
  return databaseUrl ? [blobStore.folder] : [blobStore.folder, dataDir]
}

/** Checks nothing if the operator chose no block list. */
function askingLists({ settings, clock, log, dnsCache }: Foundation): Pick<SmtpServerOptions, 'listingOf'> {
  const lists = settings.blocklists
  if (lists.length === 0) return {}
  const blocklists = new Blocklists({ lookup: dnsCache.lookup, lists, clock, log })
  return { listingOf: (address) => blocklists.check(address) }
}
