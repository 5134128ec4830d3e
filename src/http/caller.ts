// Admits API callers: checks the key or session, the request rate, the organization's state and the scope, in this order.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../base/clock.ts'
import { ServiceError } from '../base/errors.ts'
import { writtenAddress } from '../base/ip-address.ts'
import { within } from '../base/within.ts'
import type { Admission, KeyRing, RequestRate } from '../flow/accounts/authenticate.ts'
import { memberScopes } from '../flow/accounts/member-keys.ts'
import { type Caller, hasScope, type Scope } from '../flow/caller.ts'
import { admissionMs } from '../flow/known-everywhere.ts'
import type { Db } from '../postgres/db.ts'
import { answerInTime, unavailable } from './answer-in-time.ts'
import type { Api, Authenticate } from './api.ts'
import { readerFor } from './reader.ts'

/** Limit on the time to find the caller. */
export const callerMs = 10_000
/** How long an operation may take to begin its answer: a check of a domain's records takes ten seconds. */
export const answerMs = 15_000

type Deps = { db: Db; clock: Clock; authenticate: Authenticate; requestRate: RequestRate }

/**
 * Requires a caller on every route that is added later. A request is admitted before its body is read, or refused with 401,
 * 429 or 403. A route without a declared scope stops the start. An operation that does not begin its answer in time is
 * answered with 503.
 */
export function requireCallers(api: Api, deps: Deps): void {
  api.addHook('onRoute', (route) => {
    const scope = route.config?.scope
    if (scope === undefined) throw new Error(`the route ${route.url} does not say which scope it needs`)
    route.onRequest = admit(deps, scopesOf(scope))
    if (route.schema?.body)
      route.preValidation = [(request) => readmit(deps, request), ...[route.preValidation ?? []].flat()]
    route.handler = answerInTime(route.handler, answerMs + (route.config?.longestWaitMs ?? 0))
  })
}

/** Returns the scopes of which a key needs at least one. Empty if any valid key may call. */
export function scopesOf(scope: Scope | readonly Scope[] | null): readonly Scope[] {
  if (scope === null) return []
  return typeof scope === 'string' ? [scope] : scope
}

function admit(deps: Deps, scopes: readonly Scope[]) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    request.admittedMs = deps.clock.monotonicMs()
    const { caller, admission } = await within(callerMs, enter(deps, request), unavailable)
    countRequest(reply, admission)
    request.caller = caller
    request.db = readerFor(deps, request, reply, caller.organizationId)
    requireActive(caller)
    requireOneOf(scopes, caller)
  }
}

async function enter(deps: Deps, request: FastifyRequest): Promise<{ caller: Caller; admission: Admission }> {
  const caller = await deps.authenticate(request)
  return { caller, admission: await deps.requestRate.admit(caller) }
}

/** Sets the rate limit headers. Throws `rate_limited` if the caller has used all requests of the current minute. */
export function countRequest(
  reply: FastifyReply,
  { isAllowed, limit, remaining, resetSeconds }: Admission,
): void {
  reply.header('ratelimit-policy', `"requests";q=${limit};w=60`)
  reply.header('ratelimit', `"requests";r=${remaining};t=${resetSeconds}`)
  if (!isAllowed) throw new ServiceError('rate_limited', undefined, resetSeconds)
}

/**
 * Checks the caller again if a body or a wait for mail took longer than `admissionMs`. Meanwhile the key may have been
 * revoked, or the organization suspended. Refuses a caller who would no longer be admitted.
 */
export async function readmit(
  deps: Pick<Deps, 'clock' | 'authenticate'>,
  request: FastifyRequest,
): Promise<void> {
  const nowMs = deps.clock.monotonicMs()
  if (nowMs - request.admittedMs <= admissionMs) return
  request.caller = await within(callerMs, deps.authenticate(request), unavailable)
  request.admittedMs = nowMs
  requireActive(request.caller)
}

/** Identifies the caller only by the key in x-api-key. Never reads a cookie. */
export function byKey(keyRing: KeyRing): Authenticate {
  return bySecret(keyRing, ({ headers }) => {
    const secret = headers['x-api-key']
    return typeof secret === 'string' ? secret : undefined
  })
}

/** Identifies the caller only by the key as bearer token. */
export function byBearer(keyRing: KeyRing): Authenticate {
  return bySecret(keyRing, bearerOf)
}

/** The bearer token of the request. */
export function bearerOf({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  // RFC 9110 11.1: the name of the scheme has no case. RFC 6750 2.1: the token follows it.
  return /^Bearer +(\S{1,200})$/i.exec(headers.authorization ?? '')?.[1]
}

function bySecret(keyRing: KeyRing, secretOf: (request: FastifyRequest) => string | undefined): Authenticate {
  return async (request) => {
    const ip = writtenAddress(request.ip)
    const caller = await keyRing.authenticate(secretOf(request), ip)
    if (!caller) throw new ServiceError('unauthorized')
    return { ...caller, ip }
  }
}

function requireActive({ organizationStatus }: Caller): void {
  if (organizationStatus !== 'active') throw new ServiceError('organization_inactive')
}

function requireOneOf(scopes: readonly Scope[], caller: Caller): void {
  if (scopes.length === 0 || scopes.some((scope) => hasScope(caller, scope))) return
  const isMembers = scopes.some((scope) => memberScopes.some((known) => known === scope))
  const grantor = isMembers
    ? 'Create a key with this scope in the dashboard.'
    : 'It needs a server key. Members create one in the dashboard; the operator of this service can grant your organization server keys.'
  throw new ServiceError(
    'insufficient_scope',
    `This operation needs the scope ${scopes.join(' or ')}. ${grantor}`,
  )
}
