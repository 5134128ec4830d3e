// Answers with a stream, if there still is somebody to answer.
import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'

/** One that was opened too late, after the 503, is closed, for nobody would read it. */
export function sendStream(reply: FastifyReply, stream: Readable): FastifyReply {
  if (!reply.sent) return reply.send(stream)
  stream.destroy()
  return reply
}
