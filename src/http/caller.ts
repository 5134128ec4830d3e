// Who calls: the key in x-api-key, its request rate, its organization's state and its scope, in this order.
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import type { Clock } from '../base/clock.ts'
import { ServiceError } from '../base/errors.ts'
import { writtenAddress } from '../base/ip-address.ts'
import type { KeyRing, RequestRate } from '../flow/authenticate.ts'
import { type Caller, hasScope, type Scope } from '../flow/caller.ts'
import { admissionMs } from '../flow/key.ts'
import type { Api } from './api.ts'
import { answerWaitMs, callerWaitMs, withinTime } from './deadline.ts'

type Deps = { clock: Clock; keyRing: KeyRing; requestRate: RequestRate }

/**
 * Puts every route that is added after it behind a key: a request is let in before its body is read, or refused with
 * 401, 429 or 403. A route that does not say which scope it needs is a mistake that stops the start. What does not
 * come to an end in time is answered with 503.
 */
export function requireCallers(api: Api, deps: Deps): void {
  api.addHook('onRoute', (route) => {
    const scope = route.config?.scope
    if (scope === undefined) throw new Error(`the route ${route.url} does not say which scope it needs`)
    route.onRequest = admit(deps, scopesOf(scope))
    if (route.schema?.body) route.preValidation = [readmit(deps), ...[route.preValidation ?? []].flat()]
    route.handler = answerInTime(route.handler)
  })
}

/** The scopes of which a key needs one; none: any key will do. */
export function scopesOf(scope: Scope | readonly Scope[] | null): readonly Scope[] {
  if (scope === null) return []
  return typeof scope === 'string' ? [scope] : scope
}

function admit(deps: Deps, scopes: readonly Scope[]) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    request.admittedMs = deps.clock.monotonicMs()
    request.caller = await withinTime(admitCaller(deps, request, reply), callerWaitMs)
    const { caller } = request
    requireActive(caller)
    if (scopes.length > 0 && !scopes.some((scope) => hasScope(caller, scope))) {
      throw new ServiceError('insufficient_scope', `The operation needs the scope ${scopes.join(' or ')}.`)
    }
  }
}

async function admitCaller(deps: Deps, request: FastifyRequest, reply: FastifyReply): Promise<Caller> {
  const caller = await authenticate(deps, request)
  const { allowed, limit, remaining, resetSeconds } = await deps.requestRate.admit(caller)
  reply.header('ratelimit-policy', `"requests";q=${limit};w=60`)
  reply.header('ratelimit', `"requests";r=${remaining};t=${resetSeconds}`)
  if (!allowed) throw new ServiceError('rate_limited', undefined, resetSeconds)
  return caller
}

/** A body may take minutes to arrive: by then its key may have been revoked, or its organization suspended. */
function readmit(deps: Deps) {
  return (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void => {
    const isFresh = deps.clock.monotonicMs() - request.admittedMs <= admissionMs
    if (isFresh) done()
    else readmitCaller(deps, request).then(() => done(), done)
  }
}

async function readmitCaller(deps: Deps, request: FastifyRequest): Promise<void> {
  request.caller = await withinTime(authenticate(deps, request), callerWaitMs)
  requireActive(request.caller)
}

async function authenticate({ keyRing }: Deps, { headers, ip }: FastifyRequest): Promise<Caller> {
  const secret = headers['x-api-key']
  const caller = await keyRing.authenticate(
    typeof secret === 'string' ? secret : undefined,
    writtenAddress(ip),
  )
  if (!caller) throw new ServiceError('unauthorized')
  return caller
}

function requireActive({ organizationStatus }: Caller): void {
  if (organizationStatus !== 'active') throw new ServiceError('organization_inactive')
}

function answerInTime(answer: RouteOptions['handler']): RouteOptions['handler'] {
  return function (request, reply) {
    const result: unknown = answer.call(this, request, reply)
    return result instanceof Promise ? withinTime(result, answerWaitMs) : result
  }
}
