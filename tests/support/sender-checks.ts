// The sender checks for a receiver that a test makes itself: no DNS server answers their queries.
import type { Clock } from '../../src/base/clock.ts'
import type { DiskBlobs } from '../../src/blobs/disk.ts'
import { DnsCache } from '../../src/dns/cache.ts'
import { Resolver } from '../../src/dns/resolver.ts'
import { SenderChecks } from '../../src/flow/receiving/sender-checks.ts'

export function senderChecks({ clock, blobs }: { clock: Clock; blobs: DiskBlobs }): SenderChecks {
  const dns = new DnsCache({ resolver: new Resolver({ servers: ['127.0.0.1:9'] }), clock })
  const policy = { arcTrusted: [], dmarc: 'refuse', rspamd: null, noteDmarc: () => {} } as const
  return new SenderChecks({ dns, clock, blobs, hostname: 'mx.test', ...policy })
}
