// Serves the Model Context Protocol at /mcp: Streamable HTTP without sessions, with an API key as bearer token.
import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { ServiceError } from '../../base/errors.ts'
import { writtenAddress } from '../../base/ip-address.ts'
import type { KeyRing } from '../../flow/accounts/authenticate.ts'
import type { Api, HttpDeps } from '../api.ts'
import { type ByteBudget, Holding } from '../body/byte-budget.ts'
import { countAnswers } from '../body/read-json.ts'
import { bearerOf, byBearer, requireCallers } from '../caller.ts'
import { sendError } from '../errors.ts'
import { maxWaitSeconds } from '../stream/message-waits.ts'
import type { McpDeps } from './mcp-server.ts'
import type { Operations } from './operations.ts'

export const mcpPath = '/mcp'
/** More than a model writes. Larger mail is sent by the API. */
const maxBodyBytes = 1 << 20

type Deps = Omit<HttpDeps, 'authenticate'>

/** `operations` are called through `api`. */
export function serveMcp(
  api: Api,
  deps: Deps,
  keyRing: KeyRing,
  budget: ByteBudget,
  operations: Operations,
): void {
  refuseOtherMethods(api)
  api.register(async (scope: Api) => {
    scope.addHook('onRequest', async (request) => requireOrigin(request, deps.settings.publicUrl))
    // RFC 9110 11.6.1: a 401 names the scheme.
    scope.addHook('onSend', async (_request, reply) => {
      if (reply.statusCode === 401) reply.header('www-authenticate', 'Bearer realm="posthorn"')
    })
    requireCallers(scope, { ...deps, authenticate: byBearer(keyRing) })
    countAnswers(scope, budget)
    addPost(scope, { api, operations, log: deps.log }, budget)
  })
}

function addPost(scope: Api, deps: McpDeps, budget: ByteBudget): void {
  scope.post(
    mcpPath,
    {
      config: { scope: null, largestBody: maxBodyBytes, longestWaitMs: maxWaitSeconds * 1_000 },
      schema: { hide: true, operationId: 'mcp', body: Type.Object({}) },
    },
    async (request, reply) => {
      // The SDK is loaded at the first request, because most nodes never need it.
      const { answerMcp } = await import('./mcp-server.ts')
      const leaving = new AbortController()
      if (reply.raw.destroyed) leaving.abort()
      reply.raw.once('close', () => leaving.abort())
      const { caller, body, headers } = request
      const holding = new Holding(budget, caller.organizationId, reply.raw)
      const hold = (bytes: number) => {
        const refusal = holding.take(bytes)
        if (refusal) throw refusal
      }
      const fromMs = performance.now()
      const response = await answerMcp(deps, {
        id: request.id,
        url: `http://localhost${mcpPath}`,
        headers: passedHeaders(headers),
        body,
        caller,
        toolCaller: {
          secret: bearerOf(request)!,
          ip: writtenAddress(request.ip),
          signal: leaving.signal,
          hold,
        },
      })
      // The called operation counts its own time.
      request.waitedMs = performance.now() - fromMs
      const text = await response.text()
      reply.code(response.status)
      if (text === '') return reply.send()
      return reply.header('content-type', 'application/json; charset=utf-8').send(text)
    },
  )
}

/** The header fields that the protocol reads. */
function passedHeaders(headers: FastifyRequest['headers']): Record<string, string> {
  const names = ['accept', 'content-type', 'mcp-protocol-version']
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = headers[name]
      return typeof value === 'string' ? [[name, value]] : []
    }),
  )
}

/**
 * Security: a page of another origin must not reach the service through a browser in its network, also by DNS
 * rebinding. Programs send no Origin.
 */
function requireOrigin({ headers: { origin } }: FastifyRequest, publicUrl: string): void {
  if (origin === undefined) return
  if (publicUrl !== '' && origin === new URL(publicUrl).origin) return
  throw new ServiceError('wrong_origin', 'Pages of other origins cannot use MCP here.')
}

/** There are no streams to open with GET, and no sessions to end with DELETE. */
function refuseOtherMethods(api: Api): void {
  api.route({
    method: ['GET', 'DELETE'],
    url: mcpPath,
    schema: { hide: true },
    handler: async (_request, reply) =>
      sendError(reply.header('allow', 'POST'), {
        status: 405,
        error: 'route_not_found',
        message: 'MCP is spoken here by POST alone: there are no sessions and no streams.',
        retryAfterSeconds: undefined,
      }),
  })
}
