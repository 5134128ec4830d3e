// The private listener: health, readiness and metrics of the service, and the operator's desk.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Desk, DeskDeps } from './desk/deps.ts'
import { OperatorMetrics, type OperatorMetricsDeps, Text, type WorkerMetric } from './metrics.ts'
import { Readiness } from './readiness.ts'

/** `starting` until every listener of the node's roles is open, `draining` from the beginning of a stop. */
export type NodePhase = 'starting' | 'serving' | 'draining'

export interface OperatorDeps extends Omit<DeskDeps, 'metrics' | 'parsePool'> {
  /** Reads mail for the desk; closed with the listener. */
  parsePool: DeskDeps['parsePool'] & { close(): Promise<void> }
  phase(): NodePhase
  collectMetrics: OperatorMetricsDeps['collectMetrics']
  /** Why large mail cannot be stored, or null. */
  blobFault(): string | null
}

export interface OperatorServer {
  server: Server
  /** Returns the metrics of this process. */
  readMetrics(): Promise<WorkerMetric[]>
  /** Closes every connection, and everything that the desk has opened. */
  close(): Promise<void>
}

/**
 * `GET /healthz`: the process runs. `GET /readyz`: the node takes work; otherwise 503 with the reason. `GET /metrics`: for
 * Prometheus. They need no session. All other paths belong to the desk, which is made for its first visitor.
 */
export function createOperatorServer(deps: OperatorDeps): OperatorServer {
  const metrics = new OperatorMetrics(deps)
  const probes = { ...deps, metrics, readiness: new Readiness(deps.db) }
  let desk: Promise<Desk> | null = null
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?', 1)[0]!
    if (probePaths.includes(path)) return void answerProbe(probes, request, response)
    desk ??= openDesk({ ...deps, metrics })
    desk.then(
      ({ routing }) => routing(request, response),
      (error) => {
        desk = null
        deps.log.error({ err: error }, 'desk could not be opened')
        response.writeHead(500).end()
      },
    )
  })
  server.requestTimeout = 10_000
  const close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    await desk?.then((opened) => opened.close())
    await deps.parsePool.close()
  }
  return { server, readMetrics: () => metrics.own(), close }
}

/** Loaded late, because most nodes' desks are never opened. */
async function openDesk(deps: DeskDeps): Promise<Desk> {
  const { createDesk } = await import('./desk/desk.ts')
  const desk = createDesk(deps)
  await desk.ready()
  return desk
}

const probePaths = ['/healthz', '/readyz', '/metrics']

interface Probes extends Pick<OperatorDeps, 'phase' | 'blobFault'> {
  metrics: OperatorMetrics
  readiness: Readiness
}

async function answerProbe(
  probes: Probes,
  { method = '', url = '' }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const [status, body] = await probe(probes, method, url.split('?', 1)[0]!)
  const { type, text } =
    body instanceof Text ? body : new Text('application/json', `${JSON.stringify(body)}\n`)
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' })
  response.end(text)
}

async function probe(
  { phase, blobFault, metrics, readiness }: Probes,
  method: string,
  path: string,
): Promise<[number, object]> {
  if (method !== 'GET' && method !== 'HEAD') return [405, { error: 'only GET and HEAD' }]
  if (path === '/healthz') return [200, { status: 'alive' }]
  if (path === '/metrics') return [200, await metrics.text()]
  if (phase() !== 'serving') return [503, { status: phase() }]
  const reason = blobFault() ?? (await readiness.fault())
  return reason === null ? [200, { status: 'ready' }] : [503, { status: 'unavailable', reason }]
}
