// Signing in by the identity provider: the redirect to it, and the return.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ServiceError } from '../../../base/errors.ts'
import type { Oidc, Pending } from '../../../flow/people/oidc.ts'
import type { Api, AppDeps } from '../../api.ts'
import { addressOf, pagesOf } from '../asking.ts'
import { SealedCookie } from '../sealed-cookie.ts'
import { signIn } from '../sign-in.ts'

const tags = ['Access']
/** People need time to find their password and their telephone. */
const lifetimeMs = 15 * 60_000
const callbackPath = '/app/v1/oidc/callback'
/** Codes that the page can explain to people. All other failures are ours and are answered as usual. */
const spokenCodes = ['sign_in_failed', 'link_expired', 'unavailable']

export function oidcRoutes(api: Api, deps: AppDeps): void {
  const { oidc } = deps
  if (!oidc) return
  const pendings = new SealedCookie<Pending>(deps, { name: 'oidc', lifetimeMs })
  const otherResponses = { 302: { description: 'Redirects to another page.', contentType: null } }
  api.get(
    '/v1/oidc/start',
    {
      config: { session: 'none', otherResponses },
      schema: { operationId: 'beginOidc', tags, summary: 'Redirect to the identity provider' },
    },
    async (request, reply) =>
      await orBack(reply, async () => {
        const { url, pending } = await oidc.begin(`${pagesOf(deps, request)}${callbackPath}`)
        pendings.set(reply, pending)
        return url
      }),
  )
  api.get(
    '/v1/oidc/callback',
    {
      config: { session: 'none', otherResponses },
      schema: { operationId: 'completeOidc', tags, summary: 'Return from the identity provider' },
    },
    async (request, reply) =>
      await orBack(reply, async () => {
        await complete(deps, oidc, pendings, request, reply)
        return '/'
      }),
  )
}

async function complete(
  deps: AppDeps,
  oidc: Oidc,
  pendings: SealedCookie<Pending>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  // Security: only the browser that began may complete, so that it is never signed in to another person's account.
  const pending = pendings.take(request, reply)
  if (!pending) throw new ServiceError('link_expired')
  const search = request.url.indexOf('?')
  const query = search === -1 ? '' : request.url.slice(search)
  const address = new URL(`${pagesOf(deps, request)}${callbackPath}${query}`)
  const personId = await oidc.complete(address, pending, {
    ip: addressOf(request),
    pages: pagesOf(deps, request),
  })
  await signIn(deps, request, reply, { personId, way: 'identity' })
}

/** Redirects the browser, or sends it back to the sign-in page with the reason. */
async function orBack(reply: FastifyReply, next: () => Promise<string>): Promise<FastifyReply> {
  try {
    return reply.redirect(await next(), 302)
  } catch (error) {
    if (!(error instanceof ServiceError) || !spokenCodes.includes(error.code)) throw error
    return reply.redirect(`/sign-in?refused=${error.code}`, 302)
  }
}
