// The operator's desk: its pages and their operations, for a browser that opened it by a link.
import cookie from '@fastify/cookie'
import swagger from '@fastify/swagger'
import packageJson from '../../../package.json' with { type: 'json' }
import { parseJson } from '../../http/body/parse-json.ts'
import { answerFailures, answerOf, errorAnswer, sendError } from '../../http/errors.ts'
import { createServer } from '../../web/server.ts'
import { requireDesk, requireKnownHost } from './admission.ts'
import type { Desk, DeskDeps } from './deps.ts'
import { serveDeskPages } from './pages.ts'
import { auditRoutes } from './routes/audit.ts'
import { healthRoutes } from './routes/health.ts'
import { mailRoutes } from './routes/mail.ts'
import { nodeRoutes } from './routes/nodes.ts'
import { organizationChangeRoutes } from './routes/organization-changes.ts'
import { organizationRoutes } from './routes/organizations.ts'
import { queueRoutes } from './routes/queues.ts'
import { linkRoutes, sessionRoutes } from './routes/session.ts'

const largestBody = 64 * 1024
const about = { title: 'Posthorn, as the operator’s desk calls it', version: packageJson.version }

/**
 * Returns the desk, ready to take requests by its `routing`. A visitor without a session gets the page that explains how to
 * open one. Answers contain only the members that their schema lists.
 */
export function createDesk(deps: DeskDeps): Desk {
  const desk = createServer({
    bodyLimit: largestBody,
    frameworkErrors: (failure, request, reply) => void sendError(reply, answerOf(failure, request)),
  })
  answerFailures(desk, deps.log)
  desk.setNotFoundHandler((_request, reply) => sendError(reply, errorAnswer('route_not_found')))
  desk.addHook('onRequest', (request, reply, done) => {
    reply.headers({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
    })
    requireKnownHost(request)
    done()
  })
  desk.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer' },
    async (_request: unknown, body: Buffer) => parseJson(body),
  )
  desk.register(cookie)
  desk.register(swagger, { openapi: { openapi: '3.1.0', info: about } })
  serveDeskPages(desk, deps)
  desk.register(async (scope: Desk) => linkRoutes(scope, deps))
  desk.register(async (scope: Desk) => {
    requireDesk(scope, deps)
    scope.get('/desk/v1/openapi.json', { schema: { hide: true } }, async () => desk.swagger())
    sessionRoutes(scope, deps)
    organizationRoutes(scope, deps)
    organizationChangeRoutes(scope, deps)
    queueRoutes(scope, deps)
    nodeRoutes(scope, deps)
    healthRoutes(scope, deps)
    mailRoutes(scope, deps)
    auditRoutes(scope, deps)
  })
  return desk
}
