// The private listener: is the service alive, can it take work, and how does it do?
import { createServer, type Server } from 'node:http'
import type { Clock } from '../base/clock.ts'
import type { Db } from '../postgres/db.ts'
import { OperatorMetrics, Text } from './metrics.ts'

export interface OperatorDeps {
  db: Db
  clock: Clock
  /** Whether the service has begun to stop. */
  isDraining(): boolean
}

/**
 * `GET /healthz`: the process lives. `GET /readyz`: it takes work, with the reason where it does not. `GET /metrics`:
 * for Prometheus.
 */
export function createOperatorServer({ db, clock, isDraining }: OperatorDeps): Server {
  const metrics = new OperatorMetrics({ db, clock })
  const server = createServer(async (request, response) => {
    const [status, body] = await answer(request.method ?? '', request.url ?? '')
    const { type, text } =
      body instanceof Text ? body : new Text('application/json', `${JSON.stringify(body)}\n`)
    response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' })
    response.end(text)
  })
  server.requestTimeout = 10_000
  return server

  async function answer(method: string, url: string): Promise<[number, object]> {
    const path = url.split('?', 1)[0]
    if (method !== 'GET') return [405, { error: 'only GET' }]
    if (path === '/healthz') return [200, { status: 'alive' }]
    if (path === '/metrics') return [200, await metrics.text()]
    if (path !== '/readyz') return [404, { error: 'there are /healthz, /readyz and /metrics' }]
    if (isDraining()) return [503, { status: 'draining' }]
    try {
      await db.query('select 1')
      return [200, { status: 'ready' }]
    } catch (error) {
      return [503, { status: 'unavailable', reason: (error as Error).message }]
    }
  }
}
