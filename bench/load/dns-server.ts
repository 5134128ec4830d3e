// The DNS of the benchmarks as a program: answers for the zone that it is given, and prints the address that it has.
import { DnsServer, type StartOptions, type ZoneRecords } from '../../tests/support/dns-server.ts'

export interface DnsPlan extends Pick<StartOptions, 'host' | 'port'> {
  zone: Record<string, ZoneRecords>
  /** The zone that is said not to have what is not there. */
  apex: string
}

/** So that all that is asked stays known for as long as a run takes. */
const ttlSeconds = 3_600

const { zone, apex, ...address }: DnsPlan = JSON.parse(process.env['BENCH_DNS'] ?? '')
const entries = Object.entries(zone).map(([name, records]) => [name, { ttlSeconds, ...records }])
const server = await DnsServer.start(Object.fromEntries(entries), address)
server.soa = { zone: apex, ttlSeconds, minimumSeconds: ttlSeconds }
process.stdout.write(`${JSON.stringify(server.address)}\n`)
process.once('SIGTERM', () => process.exit(0))
