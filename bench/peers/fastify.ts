// Fastify as a peer: the same route without a service behind it, in a separate program.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { PoolConfig } from 'pg'
import type { Scope } from '../../tests/support/until.ts'
import { startChild, temporaryFolder, untilReady } from '../children.ts'
import { treeOf } from '../usage.ts'

export interface FastifyPeer {
  http: string
  pids(): number[]
}

const server = fileURLToPath(new URL('fastify-server.ts', import.meta.url))

/** Starts the route, either bare or with one group-committed insert into `database` before each answer. */
export async function startFastify(scope: Scope, database?: PoolConfig): Promise<FastifyPeer> {
  const folder = temporaryFolder(scope, 'fastify')
  const env: Record<string, string> = database ? { BENCH_DATABASE: JSON.stringify(database) } : {}
  const child = startChild(scope, folder, process.execPath, [server], { env })
  const line = await untilReady(child, 'Fastify listens', () => child.output().split('\n').slice(0, -1)[0])
  const { address, port } = JSON.parse(line) as { address: string; port: number }
  return { http: `http://${address}:${port}`, pids: () => treeOf(child.pid) }
}

/** Returns the installed version. */
export function fastifyVersion(): string {
  const manifest = new URL('../../node_modules/fastify/package.json', import.meta.url)
  return JSON.parse(readFileSync(manifest, 'utf8')).version
}
