// The HTTPS listener: the routes and limits of plain HTTP, with the current certificate.
import type { RequestListener } from 'node:http'
import { createServer, type Server } from 'node:https'
import { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { inRanges } from '../base/ip-address.ts'
import type { Api } from './api.ts'
import { connectionLimits } from './connections.ts'
import { errorAnswer, pathOf, sendError } from './errors.ts'

const handshakeMs = 20_000
const aYearSeconds = 31_536_000

/**
 * Returns a server for the routes of `api`, ready to listen. `pair` returns a certificate with its chain, and its key, both
 * PEM. It is called at each connection, and a new object means a new certificate.
 */
export function createHttpsServer(api: Api, pair: () => { cert: string; key: string }): Server {
  let current = pair()
  const { timeoutMs, keepAliveMs, ...limits } = connectionLimits
  const answer: RequestListener = (request, response) => api.routing(request, response)
  const server = createServer(
    {
      ...current,
      minVersion: 'TLSv1.2',
      handshakeTimeout: handshakeMs,
      keepAliveTimeout: keepAliveMs,
      ...limits,
    },
    answer,
  )
  server.setTimeout(timeoutMs)
  // Runs before the server's own listener, which begins the handshake.
  server.prependListener('connection', () => {
    const next = pair()
    if (next === current) return
    current = next
    server.setSecureContext({ ...next, minVersion: 'TLSv1.2' })
  })
  for (const listener of api.server.listeners('clientError'))
    server.on('clientError', listener as (error: Error, socket: Socket) => void)
  return server
}

/** Makes browsers return only over HTTPS. */
export function requireHttpsLater(request: FastifyRequest, reply: FastifyReply): void {
  // RFC 6797 7.2: the field is not sent over plain HTTP.
  if (isEncrypted(request)) reply.header('strict-transport-security', `max-age=${aYearSeconds}`)
}

/**
 * With HTTPS on, plain HTTP serves every route only to this machine and to trusted proxies (CIDRs). All others may only read
 * /.well-known/: a key sent elsewhere could be read on the way. Returns the refusal, or null if the request may be answered.
 */
export function refusePlain(trustedProxies: readonly string[]) {
  const isTrusted = inRanges(['127.0.0.0/8', '::1/128', ...trustedProxies])
  return (request: FastifyRequest, reply: FastifyReply): FastifyReply | null => {
    if (isEncrypted(request) || pathOf(request).startsWith('/.well-known/')) return null
    const { socket } = request.raw
    // Only a request that this service makes itself, for an MCP tool, has another kind of socket.
    if (!(socket instanceof Socket)) return null
    const { remoteAddress } = socket
    if (remoteAddress === undefined) return null // the peer has left
    if (isTrusted(remoteAddress)) return null
    return sendError(
      reply,
      errorAnswer('route_not_found', 'Over plain HTTP nothing is answered here: use https.'),
    )
  }
}

function isEncrypted({ raw }: FastifyRequest): boolean {
  return raw.socket instanceof TLSSocket
}
