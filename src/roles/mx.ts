// The mx role of a node: takes mail from the world.
import ipaddr from 'ipaddr.js'
import { DiskReserve } from '../base/disk-reserve.ts'
import type { ListenAddress } from '../config/setting-values.ts'
import type { Settings } from '../config/settings.ts'
import { ProvedDomains } from '../flow/proved-domains.ts'
import { isOwnName } from '../flow/receiving/own-name.ts'
import { Receiver } from '../flow/receiving/receive.ts'
import type { Foundation } from '../foundation.ts'
import { SmtpServer } from '../smtp/server/server.ts'
import type { Certificate } from './certificate.ts'
import { graceMs, isLocal, type Part, type Signals } from './part.ts'

/** What the mail server of this node has to say of itself; nothing, where its role is not run here. */
export interface Mx {
  isSaturated(): boolean
}

/** Returns where it listens. */
export async function startMx(
  foundation: Foundation,
  certificate: Certificate,
  { filing }: Signals,
  mx: Mx,
  parts: Part[],
): Promise<ListenAddress> {
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
    wake: () => filing.wake(),
  })
  mx.isSaturated = () => receiver.isSaturated()
  const server = new SmtpServer({
    hostname,
    listen: settings.smtp,
    maxSizeBytes: settings.smtpMaxSizeBytes,
    maxRecipients: 100,
    secureContext: () => certificate.context(),
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

function inRanges(cidrs: string[]): (address: string) => boolean {
  const ranges = cidrs.map((cidr) => ipaddr.parseCIDR(cidr))
  return (address) => {
    const ip = ipaddr.process(address)
    return ranges.some((range) => ip.kind() === range[0].kind() && ip.match(range))
  }
}
