// Starts the DNS server that the contenders ask about the senders of a benchmark, as a separate program.
import { fileURLToPath } from 'node:url'
import type { ZoneRecords } from '../../tests/support/dns-server.ts'
import type { Scope } from '../../tests/support/until.ts'
import { startChild, temporaryFolder, untilReady } from '../children.ts'
import type { DnsPlan } from './dns-server.ts'

export interface BenchDns {
  /** `ip:port`. */
  address: string
  /** The address alone if the server listens on port 53, the only port that other programs can use. Otherwise null. */
  host: string | null
}

const program = fileURLToPath(new URL('dns-server.ts', import.meta.url))

/** A loopback address for this run alone, so that nothing else listens on it. */
const host = `127.53.${(process.pid >> 8) & 255}.${1 + (process.pid % 254)}`

/** Starts the server with this zone, all of it below `apex`. Uses port 53 if we are root. */
export async function startDns(
  scope: Scope,
  zone: Record<string, ZoneRecords>,
  apex: string,
): Promise<BenchDns> {
  const isRoot = process.getuid?.() === 0
  const plan: DnsPlan = { zone, apex, host, port: isRoot ? 53 : 0 }
  const child = startChild(scope, temporaryFolder(scope, 'dns'), process.execPath, [program], {
    env: { BENCH_DNS: JSON.stringify(plan) },
  })
  const address = await untilReady(child, 'the DNS listens', () => child.output().split('\n')[0])
  return { address: JSON.parse(address), host: isRoot ? host : null }
}
