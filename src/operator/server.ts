// The private listener: is the service alive, and can it take work?
import { createServer, type Server } from 'node:http'
import type { Queryable } from '../store/db.ts'

export interface OperatorDeps {
  db: Queryable
  /** Whether the service has begun to stop. */
  isDraining(): boolean
}

/** `GET /healthz`: the process lives. `GET /readyz`: it takes work, with the reason where it does not. */
export function createOperatorServer({ db, isDraining }: OperatorDeps): Server {
  const server = createServer(async (request, response) => {
    const [status, body] = await answer(request.method ?? '', request.url ?? '')
    response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
    response.end(`${JSON.stringify(body)}\n`)
  })
  server.requestTimeout = 10_000
  return server

  async function answer(method: string, url: string): Promise<[number, object]> {
    const path = url.split('?', 1)[0]
    if (method !== 'GET') return [405, { error: 'only GET' }]
    if (path === '/healthz') return [200, { status: 'alive' }]
    if (path !== '/readyz') return [404, { error: 'there are /healthz and /readyz' }]
    if (isDraining()) return [503, { status: 'draining' }]
    try {
      await db.query('select 1')
      return [200, { status: 'ready' }]
    } catch (error) {
      return [503, { status: 'unavailable', reason: (error as Error).message }]
    }
  }
}
