// The public HTTP server: what holds for every request, and the routes behind it.
import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, { type FastifyReply } from 'fastify'
import type { Log } from '../base/log.ts'
import { meters } from '../base/meters.ts'
import type { KeyRing } from '../flow/accounts/authenticate.ts'
import { isWrittenAsEmail, readEmail } from '../mail/address.ts'
import { lateCompilers } from '../web/late-compilers.ts'
import { answerHeadAndOptions } from '../web/methods.ts'
import type { Api, AppDeps, HttpDeps } from './api.ts'
import { serveApp } from './app/app.ts'
import { ByteBudget } from './body/byte-budget.ts'
import { countAnswers, takeJson } from './body/read-json.ts'
import { byKey, requireCallers } from './caller.ts'
import { connectionLimits } from './connections.ts'
import { serveDocs } from './document/docs.ts'
import { addOpenApi, serveOpenApi } from './document/openapi.ts'
import { answerFailures, answerOf, errorAnswer, logBrokenAnswers, sendError } from './errors.ts'
import { refusePlain, requireHttpsLater } from './https.ts'
import { Cursors } from './lists.ts'
import { logRequests, logUnread } from './request-log.ts'
import { accountRoutes } from './routes/account.ts'
import { attachmentRoutes } from './routes/attachments.ts'
import { complaintRoutes } from './routes/complaints.ts'
import { domainRoutes } from './routes/domains.ts'
import { eventRoutes } from './routes/events.ts'
import { inboxRoutes } from './routes/inboxes.ts'
import { messageRoutes } from './routes/messages.ts'
import { metricsRoutes } from './routes/metrics.ts'
import { sendRoutes } from './routes/send.ts'
import { submissionRoutes } from './routes/submissions.ts'
import { suppressionRoutes } from './routes/suppressions.ts'
import { threadRoutes } from './routes/threads.ts'
import { validationRoutes } from './routes/validate.ts'
import { webhookRoutes } from './routes/webhooks.ts'
import { announcementComponents } from './schemas/announcement.ts'
import { domainComponents } from './schemas/domain.ts'
import { inboxComponents } from './schemas/inbox.ts'
import { GivenMailbox, Mailbox } from './schemas/mailbox.ts'
import { messageComponents } from './schemas/message.ts'
import { metricsComponents } from './schemas/metrics.ts'
import { Profile } from './schemas/profile.ts'
import { Refusal } from './schemas/refusal.ts'
import { sendComponents } from './schemas/send.ts'
import { submissionComponents } from './schemas/submission.ts'
import { suppressionComponents } from './schemas/suppression.ts'
import { threadComponents } from './schemas/thread.ts'
import { validationComponents } from './schemas/validate.ts'
import { webhookComponents } from './schemas/webhook.ts'
import { serveWellKnown } from './well-known.ts'

const components = [
  ...[Refusal, Profile, Mailbox, GivenMailbox, ...messageComponents, ...inboxComponents],
  ...[...domainComponents, ...suppressionComponents, ...webhookComponents],
  ...[
    ...submissionComponents,
    ...metricsComponents,
    ...threadComponents,
    ...sendComponents,
    ...validationComponents,
    ...announcementComponents,
  ],
]

/** What it serves: the API behind keys, the dashboard behind sessions, or both. */
export interface ServerDeps extends Omit<HttpDeps, 'authenticate'> {
  /** Null: the API is not served here. */
  keyRing: KeyRing | null
  /** Null: the dashboard is not served here. */
  dashboard: Omit<AppDeps, keyof HttpDeps | 'publicUrl' | 'managedDomain'> | null
}

/**
 * The server, ready to listen; `close` answers what is under way and ends idle connections. Another server may hand requests
 * to its `routing`.
 */
export function createHttpServer(deps: ServerDeps): Api {
  const { trustedProxies, isHttpsOn } = deps.settings
  const api = createApi(trustedProxies, deps.log)
  answerFailures(api, deps.log)
  api.addHook('onResponse', logRequests(deps.log))
  api.addHook('onSend', logBrokenAnswers(deps.log))
  answerHeadAndOptions(api)
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
  const budget = new ByteBudget(deps.settings.bodyMemoryBytes)
  takeJson(api, budget)
  for (const { definition } of components) api.addSchema(definition)
  const schemaNames = components.map(({ definition }) => definition.$id)
  addOpenApi(api, deps.settings.publicUrl, schemaNames)
  serveOpenApi(api)
  serveDocs(api)
  serveWellKnown(api, deps)
  const { keyRing, dashboard } = deps
  const { publicUrl, managedDomain } = deps.settings
  if (keyRing)
    api.register(async (scope: Api) => addRoutes(scope, { ...deps, authenticate: byKey(keyRing) }, budget))
  if (dashboard)
    serveApp(api, { ...deps, ...dashboard, publicUrl, managedDomain }, (scope, authenticate) =>
      addRoutes(scope, { ...deps, authenticate }, budget),
    )
  return api
}

function addRoutes(api: Api, deps: HttpDeps, budget: ByteBudget): void {
  requireCallers(api, deps)
  countAnswers(api, budget)
  const cursors = new Cursors(deps.secretBox)
  accountRoutes(api)
  inboxRoutes(api, deps, cursors)
  messageRoutes(api, deps, cursors)
  attachmentRoutes(api, deps)
  threadRoutes(api, deps, cursors)
  submissionRoutes(api, deps, cursors)
  suppressionRoutes(api, deps, cursors)
  complaintRoutes(api, cursors)
  sendRoutes(api, deps)
  domainRoutes(api, deps, cursors)
  metricsRoutes(api, deps)
  validationRoutes(api, deps)
  webhookRoutes(api, deps, cursors)
  eventRoutes(api, deps)
}

function createApi(trustedProxies: string[], log: Log): Api {
  const { timeoutMs, keepAliveMs, requestTimeout, ...checked } = connectionLimits
  const api = Fastify({
    logger: false,
    genReqId: nextRequestId,
    // Whoever is not behind these proxies could otherwise call from any address it likes.
    trustProxy: trustedProxies.length > 0 ? trustedProxies : false,
    // RFC 9110 9.3.2: what answers GET answers HEAD.
    exposeHeadRoutes: true,
    return503OnClosing: false,
    requestTimeout,
    connectionTimeout: timeoutMs,
    keepAliveTimeout: keepAliveMs,
    http: checked,
    // Longer than any path that Node lets through, so that the schemas judge ids.
    routerOptions: { maxParamLength: 16_384 },
    schemaController: lateCompilers(),
    ajv: {
      customOptions: {
        removeAdditional: false,
        coerceTypes: false,
        useDefaults: false,
        allErrors: false,
        // A breach knows the schema that it broke, for the words of its answer.
        verbose: true,
        allowUnionTypes: true,
        strictTypes: false,
        formats: { 'idn-email': (text: string) => readEmail(text) !== null },
      },
      // Fastify's own formats come after those above. An address to validate may be longer than one to send to.
      onCreate: (ajv) => void ajv.addFormat('email', isWrittenAsEmail),
    },
    frameworkErrors: (failure, request, reply) => {
      setCommonHeaders(reply)
      const answer = answerOf(failure, request)
      logUnread(log, request.id, answer.status, answer.error)
      sendError(reply, answer)
    },
    clientErrorHandler: (error, socket) => answerBrokenRequest(error, socket, log),
  }).withTypeProvider<TypeBoxTypeProvider>()
  return api
}

const requestIdPrefix = randomBytes(9).toString('base64url')
let requestCount = 0

/** Ids of one run of the service share a prefix; a counter is cheaper than randomness for each. */
function nextRequestId(_request: IncomingMessage): string {
  return `${requestIdPrefix}${(++requestCount).toString(36)}`
}

function setCommonHeaders(reply: FastifyReply): void {
  reply.headers({
    'x-request-id': reply.request.id,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  })
}

/** What is not HTTP has no route, so it is told so in HTTP and nothing more is read from it. */
function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Socket, log: Log): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const { status, error: code, message } = errorAnswer('invalid_request')
  const body = JSON.stringify({ error: code, message })
  const requestId = `${requestIdPrefix}${(++requestCount).toString(36)}`
  logUnread(log, requestId, status, code)
  const head = [
    ...[
      `HTTP/1.1 ${status} Bad Request`,
      'connection: close',
      'content-type: application/json; charset=utf-8',
    ],
    ...[
      `content-length: ${Buffer.byteLength(body)}`,
      'cache-control: no-store',
      'x-content-type-options: nosniff',
    ],
    `x-request-id: ${requestId}`,
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
