// The public HTTP server: the rules for every request, and the routes.
import { meters } from '../base/meters.ts'
import type { KeyRing } from '../flow/accounts/authenticate.ts'
import type { Api, AppDeps, HttpDeps } from './api.ts'
import { serveApp } from './app/app.ts'
import { ByteBudget } from './body/byte-budget.ts'
import { takeJson } from './body/read-json.ts'
import { byKey } from './caller.ts'
import { createApi, setCommonHeaders } from './create-api.ts'
import { serveDocs } from './document/docs.ts'
import { serveGuide } from './document/guide.ts'
import { addOpenApi, serveOpenApi } from './document/openapi.ts'
import { answerFailures, errorAnswer, sendError } from './errors.ts'
import { refusePlain, requireHttpsLater } from './https.ts'
import { collectOperations, type Operations } from './mcp/operations.ts'
import { mcpPath, serveMcp } from './mcp/serve-mcp.ts'
import { logRequests } from './request-log.ts'
import { addRoutes } from './routes/routes.ts'
import { components } from './schemas/components.ts'
import { serveUnsubscribe } from './unsubscribe.ts'
import { serveWellKnown } from './well-known.ts'

/** Parts of the server: the API with keys, the dashboard with sessions, or both. */
export interface ServerDeps extends Omit<HttpDeps, 'authenticate'> {
  /** Null: the API is not served here. */
  keyRing: KeyRing | null
  /** Called after each request that may have written: it may have announced an event. */
  wrote(): void
  /** Null: the dashboard is not served here. */
  dashboard: Omit<AppDeps, keyof HttpDeps | 'publicUrl' | 'managedDomain'> | null
}

/**
 * Returns the server, ready to listen. `close` answers requests under way and ends idle connections. Another server may pass
 * requests to its `routing`.
 */
export function createHttpServer(deps: ServerDeps): Api {
  const { trustedProxies, isHttpsOn } = deps.settings
  const api = createApi(trustedProxies, deps.log)
  answerFailures(api, deps.log)
  api.addHook('onResponse', logRequests(deps.log))
  if (!deps.dashboard)
    api.setNotFoundHandler((_request, reply) => sendError(reply, errorAnswer('route_not_found')))
  const refuse = isHttpsOn ? refusePlain(trustedProxies) : () => null
  api.addHook('onRequest', (request, reply, done) => {
    setCommonHeaders(reply)
    requireHttpsLater(request, reply)
    if (refuse(request, reply) === null) done()
  })
  api.addHook('onResponse', (request, reply, done) => {
    meters.httpSeconds.observe(
      {
        operation:
          (request.routeOptions.schema as { operationId?: string } | undefined)?.operationId ?? 'other',
        status: `${Math.floor(reply.statusCode / 100)}xx`,
      },
      (reply.elapsedTime - (request.waitedMs ?? 0)) / 1000,
    )
    done()
  })
  api.addHook('onResponse', (request, reply, done) => {
    const isRead =
      request.method === 'GET' || request.method === 'HEAD' || request.routeOptions.url === mcpPath
    // An operation that an MCP tool calls is a request of its own.
    if (!isRead && reply.statusCode < 400) deps.wrote()
    done()
  })
  const budget = new ByteBudget(deps.settings.bodyMemoryBytes)
  takeJson(api, budget)
  for (const { definition } of components) api.addSchema(definition)
  const schemaNames = components.map(({ definition }) => definition.$id)
  addOpenApi(api, deps.settings.publicUrl, schemaNames)
  serveOpenApi(api)
  serveDocs(api)
  serveGuide(api)
  serveWellKnown(api, deps)
  serveUnsubscribe(api, deps)
  const { keyRing, dashboard } = deps
  const { publicUrl, managedDomain } = deps.settings
  if (keyRing) {
    const operations: Operations = new Map()
    api.register(async (scope: Api) => {
      collectOperations(scope, operations)
      addRoutes(scope, { ...deps, authenticate: byKey(keyRing) }, budget)
    })
    serveMcp(api, deps, keyRing, budget, operations)
  }
  if (dashboard)
    serveApp(api, { ...deps, ...dashboard, publicUrl, managedDomain }, (scope, authenticate) =>
      addRoutes(scope, { ...deps, authenticate }, budget),
    )
  return api
}
