// The destinations of outgoing mail: many domains, whose mail servers in DNS are all the same sink.
import type { ZoneRecords } from '../../tests/support/dns-server.ts'
import type { Scope } from '../../tests/support/until.ts'
import { startDns } from './dns.ts'

export interface FarWorld {
  /** The resolver's address. It has port 53. */
  dns: string
  /** The sink must listen here. */
  sink: { host: string; port: number }
  /** One recipient in each domain. */
  recipients: string[]
}

/** A loopback address for this run alone, so that port 25 is free. */
const host = `127.25.${(process.pid >> 8) & 255}.${1 + (process.pid % 254)}`

/** Starts the DNS server of `destinations` domains. Needs root. */
export async function startFarWorld(scope: Scope, destinations: number): Promise<FarWorld> {
  const zone: Record<string, ZoneRecords> = {}
  const recipients = Array.from({ length: destinations }, (_, number) => {
    // Each has a provider of its own: mail to one provider shares its limits.
    const domain = `far${number}.example`
    zone[domain] = { MX: [[10, `mx.${domain}`]] }
    zone[`mx.${domain}`] = { A: [host] }
    return `u@${domain}`
  })
  const dns = await startDns(scope, zone, 'example')
  if (dns.host === null)
    throw new Error('missing: mail servers are asked for at port 53, which only root can have')
  return { dns: dns.host, sink: { host, port: 25 }, recipients }
}
