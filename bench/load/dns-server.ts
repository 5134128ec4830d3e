// The DNS server of the benchmarks as a program: answers for the zone it is given, and prints its address.
import { DnsServer, type StartOptions, type ZoneRecords } from '../../tests/support/dns-server.ts'

export interface DnsPlan extends Pick<StartOptions, 'host' | 'port'> {
  zone: Record<string, ZoneRecords>
  /** The zone of the SOA record in negative answers. */
  apex: string
}

/** Long enough for resolvers to cache every answer for a whole run. */
const ttlSeconds = 3_600

const { zone, apex, ...address }: DnsPlan = JSON.parse(process.env['BENCH_DNS'] ?? '')
const entries = Object.entries(zone).map(([name, records]) => [name, { ttlSeconds, ...records }])
const server = await DnsServer.start(Object.fromEntries(entries), address)
server.soa = { zone: apex, ttlSeconds, minimumSeconds: ttlSeconds }
process.stdout.write(`${JSON.stringify(server.address)}\n`)
process.once('SIGTERM', () => process.exit(0))
