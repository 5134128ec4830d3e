// Creates the Fastify instance: limits, schema checks, and the reply to malformed HTTP.
import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'
import type { Log } from '../base/log.ts'
import { isWrittenAsEmail, readEmail } from '../mail/address.ts'
import { createServer } from '../web/server.ts'
import type { Api } from './api.ts'
import { connectionLimits } from './connections.ts'
import { answerOf, errorAnswer, sendError } from './errors.ts'
import { logUnread } from './request-log.ts'

export function createApi(trustedProxies: string[], log: Log): Api {
  const { timeoutMs, keepAliveMs, requestTimeout, ...checked } = connectionLimits
  return createServer({
    genReqId: nextRequestId,
    // Believes x-forwarded-for only from these proxies, because any other client could claim any address.
    trustProxy: trustedProxies.length > 0 ? trustedProxies : false,
    requestTimeout,
    connectionTimeout: timeoutMs,
    keepAliveTimeout: keepAliveMs,
    http: checked,
    // Longer than any path that Node accepts, so that the router passes every id on to the schemas.
    routerOptions: { maxParamLength: 16_384 },
    // Validation accepts longer addresses than sending does.
    formats: { 'idn-email': (text) => readEmail(text) !== null, email: isWrittenAsEmail },
    frameworkErrors: (failure, request, reply) => {
      setCommonHeaders(reply)
      const answer = answerOf(failure, request)
      logUnread(log, request.id, answer.status, answer.error)
      sendError(reply, answer)
    },
    clientErrorHandler: (error, socket) => answerBrokenRequest(error, socket, log),
  })
}

const requestIdPrefix = randomBytes(9).toString('base64url')
let requestCount = 0

/** Ids of one run share a prefix. A counter is cheaper than a random id for each request. */
function nextRequestId(_request: IncomingMessage): string {
  return `${requestIdPrefix}${(++requestCount).toString(36)}`
}

export function setCommonHeaders(reply: FastifyReply): void {
  reply.headers({
    'x-request-id': reply.request.id,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  })
}

/** Answers malformed HTTP, which has no route, with an HTTP error. Reads nothing more from the connection. */
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
