// Who calls: the key in x-api-key, its request rate, its organization's state and its scope, in this order.
import type { FastifyReply, FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'
import { ServiceError } from '../base/errors.ts'
import type { KeyRing, RequestRate } from '../flow/authenticate.ts'
import { hasScope, type Scope } from '../flow/caller.ts'
import type { Api } from './api.ts'

type Deps = { keyRing: KeyRing; requestRate: RequestRate }

/**
 * Puts every route that is added after it behind a key: a request is let in before its body is read, or refused with
 * 401, 429 or 403. A route that does not say which scope it needs is a mistake that stops the start.
 */
export function requireCallers(api: Api, deps: Deps): void {
  api.addHook('onRoute', (route) => {
    const scope = route.config?.scope
    if (scope === undefined) throw new Error(`the route ${route.url} does not say which scope it needs`)
    route.onRequest = admit(deps, scopesOf(scope))
  })
}

/** The scopes of which a key needs one; none: any key will do. */
export function scopesOf(scope: Scope | readonly Scope[] | null): readonly Scope[] {
  if (scope === null) return []
  return typeof scope === 'string' ? [scope] : scope
}

function admit({ keyRing, requestRate }: Deps, scopes: readonly Scope[]) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const secret = request.headers['x-api-key']
    const caller = await keyRing.authenticate(
      typeof secret === 'string' ? secret : undefined,
      writtenAddress(request.ip),
    )
    if (!caller) throw new ServiceError('unauthorized')
    const { allowed, limit, remaining, resetSeconds } = await requestRate.admit(caller)
    reply.header('ratelimit-policy', `"requests";q=${limit};w=60`)
    reply.header('ratelimit', `"requests";r=${remaining};t=${resetSeconds}`)
    if (!allowed) throw new ServiceError('rate_limited', undefined, resetSeconds)
    if (caller.organizationStatus !== 'active') throw new ServiceError('organization_inactive')
    if (scopes.length > 0 && !scopes.some((scope) => hasScope(caller, scope))) {
      throw new ServiceError('insufficient_scope', `The operation needs the scope ${scopes.join(' or ')}.`)
    }
    request.caller = caller
  }
}

/** The one written form of an address, for exact comparison: IPv4 out of IPv6's mapping, IPv6 compressed. */
function writtenAddress(ip: string): string {
  return ip.includes(':') && ipaddr.isValid(ip) ? ipaddr.process(ip).toString() : ip
}
