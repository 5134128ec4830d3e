// Serves /.well-known/ for a mail host: challenges of certificate authorities, and MTA-STS policies.
import type { FastifyRequest } from 'fastify'
import { ServiceError } from '../base/errors.ts'
import { KnownFor } from '../base/known-for.ts'
import { within } from '../base/within.ts'
import { readMtaStsPolicy } from '../flow/domains/mta-sts-policy.ts'
import { findKeyAuthorization } from '../store/domains/certificates.ts'
import type { Api, HttpDeps } from './api.ts'
import { errorAnswer, sendError } from './errors.ts'

const answerMs = 10_000
const maxTokens = 1_000

type Deps = Pick<HttpDeps, 'db' | 'clock' | 'domains' | 'mtaStsMode' | 'settings'>

/** Anyone may read these paths, without a key. */
export function serveWellKnown(api: Api, deps: Deps): void {
  if (deps.settings.hasAcme) addChallenges(api, deps)
  addPolicies(api, deps)
}

function addChallenges(api: Api, { db, clock }: Deps): void {
  // Caches answers, because a certificate authority asks from several hosts at once, and anyone may ask for any token.
  const known = new KnownFor<string, string>({
    name: 'find challenges',
    clock,
    ms: 1_000,
    missingMs: 100,
    max: maxTokens,
    load: async (tokens) => {
      const found = new Map<string, string>()
      for (const token of tokens) {
        const keyAuthorization = await findKeyAuthorization(db, token, clock.now())
        if (keyAuthorization !== null) found.set(token, keyAuthorization)
      }
      return found
    },
  })
  api.get('/.well-known/acme-challenge/:token', { schema: { hide: true } }, async ({ params }, reply) => {
    const { token } = params as { token: string }
    // RFC 8555 8.3: a token has the letters of base64url alone.
    const isToken = /^[A-Za-z0-9_-]{1,256}$/.test(token)
    const keyAuthorization = isToken ? await answered(known.find(token)) : null
    if (keyAuthorization === null) return sendError(reply, errorAnswer('route_not_found'))
    return reply.header('content-type', 'application/octet-stream').send(keyAuthorization)
  })
}

function addPolicies(api: Api, { domains, mtaStsMode, settings }: Deps): void {
  const { managedDomain, mailHost } = settings
  api.get('/.well-known/mta-sts.txt', { schema: { hide: true } }, async (request, reply) => {
    const deps = { domains, managedDomain, mailHost, mtaStsMode }
    const policy = await answered(readMtaStsPolicy(deps, nameIn(request)))
    if (policy === null) return sendError(reply, errorAnswer('route_not_found'))
    // RFC 8461 3.2: the media type is text/plain.
    return reply.header('content-type', 'text/plain; charset=utf-8').send(policy)
  })
}

/** The requested host name, without a port and the dot at its end. */
function nameIn({ headers }: FastifyRequest): string {
  return (headers.host ?? '').replace(/:\d{0,5}$/, '').replace(/\.$/, '')
}

/** Bounds the wait, because a stopped database never answers. */
function answered<Result>(work: Promise<Result>): Promise<Result> {
  return within(answerMs, work, () => Promise.reject(new ServiceError('unavailable')))
}
