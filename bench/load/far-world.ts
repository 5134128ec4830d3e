// The destinations of outgoing mail: many domains, whose mail servers in DNS are all the same sink, and one other domain.
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
  /** A further domain, whose mail server is at another address with port 25. */
  other: { recipient: string; host: string }
}

/** Loopback addresses for this run alone, so that port 25 is free. */
const host = `127.25.${(process.pid >> 8) & 255}.${1 + (process.pid % 254)}`
const otherHost = host.replace('127.25.', '127.26.')

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
  zone['other.example'] = { MX: [[10, 'mx.other.example']] }
  zone['mx.other.example'] = { A: [otherHost] }
  const dns = await startDns(scope, zone, 'example')
  if (dns.host === null)
    throw new Error('missing: mail servers are asked for at port 53, which only root can have')
  const other = { recipient: 'u@other.example', host: otherHost }
  return { dns: dns.host, sink: { host, port: 25 }, recipients, other }
}
