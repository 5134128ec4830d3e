// The session of the desk: open it by a link, read it, close it.
import type { FastifyReply } from 'fastify'
import { closeDesk, type DeskSession, deskSessionMs, openDesk } from '../../../flow/people/operator-access.ts'
import { cookieName, requireLoopback, requireOwnOrigin } from '../admission.ts'
import type { Desk, DeskDeps } from '../deps.ts'
import { LinkToken, Session } from '../schemas/session.ts'

/** RFC 6265bis 4.1.3.2: the prefix requires path `/`, `secure` and no domain. Browsers accept loopback as secure. */
const attributes = { path: '/', httpOnly: true, secure: true, sameSite: 'strict' } as const

/** Needs a link, not a session. */
export function linkRoutes(desk: Desk, deps: DeskDeps): void {
  desk.post(
    '/desk/v1/session',
    { schema: { body: LinkToken, response: { 200: Session } } },
    async (request, reply) => {
      requireLoopback(request)
      requireOwnOrigin(request)
      const userAgent = request.headers['user-agent'] ?? ''
      const { cookie, session } = await openDesk(deps, request.body.token, { ip: request.ip, userAgent })
      reply.setCookie(cookieName, cookie, { ...attributes, maxAge: deskSessionMs / 1000 })
      return present(session, deps)
    },
  )
}

export function sessionRoutes(desk: Desk, deps: DeskDeps): void {
  desk.get('/desk/v1/session', { schema: { response: { 200: Session } } }, async ({ deskSession }) =>
    present(deskSession, deps),
  )
  desk.delete('/desk/v1/session', async ({ cookies }, reply) => {
    await closeDesk(deps, cookies[cookieName]!)
    return forget(reply).code(204).send()
  })
}

function forget(reply: FastifyReply): FastifyReply {
  return reply.setCookie(cookieName, '', { ...attributes, maxAge: 0 })
}

function present(session: DeskSession, { settings: { managedDomain, delivery } }: DeskDeps): Session {
  return { ...session, managedDomain, delivery }
}
