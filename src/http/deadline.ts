// How long a request waits for what it asked of the service, whatever hangs behind it.
import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { ServiceError } from '../base/errors.ts'

/** How long a caller's key is looked for. */
export const callerWaitMs = 10_000
/** How long an operation takes at most: looking a domain's records up takes ten seconds. */
export const answerWaitMs = 15_000

/**
 * Settles as `work` does, or rejects with `unavailable` once `ms` have passed. A database that is stopped answers
 * nothing and breaks no connection; whether the work was done is then not known, as with any lost connection.
 */
export function withinTime<Result>(work: Promise<Result>, ms: number): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new ServiceError('unavailable')), ms)
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** Answers with the stream; one that was opened too late, after the 503, is closed, for nobody would read it. */
export function sendStream(reply: FastifyReply, stream: Readable): FastifyReply {
  if (!reply.sent) return reply.send(stream)
  stream.destroy()
  return reply
}
