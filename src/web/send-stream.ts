// Answers a request with a stream, unless it has been answered already.
import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'

/** Sends the stream, or closes it if it was opened too late, after the 503. */
export function sendStream(reply: FastifyReply, stream: Readable): FastifyReply {
  if (!reply.sent) return reply.send(stream)
  stream.destroy()
  return reply
}
