// Starts the DNS that the contenders ask about the senders of a benchmark, in a program of its own.
import { fileURLToPath } from 'node:url'
import type { ZoneRecords } from '../../tests/support/dns-server.ts'
import type { Scope } from '../../tests/support/until.ts'
import { startChild, temporaryFolder, untilReady } from '../children.ts'
import type { DnsPlan } from './dns-server.ts'

export interface BenchDns {
  /** `ip:port`. */
  address: string
  /** The address alone where it listens on port 53, which is all that other programs can be told; else null. */
  host: string | null
}

const program = fileURLToPath(new URL('dns-server.ts', import.meta.url))

/** A loopback address of this run's own, where nothing else listens. */
const host = `127.53.${(process.pid >> 8) & 255}.${1 + (process.pid % 254)}`

/** Starts it with this zone, all of it below `apex`; on port 53 where we are root. */
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
