// Bounds how long an operation may take to begin its answer.
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { ServiceError } from '../base/errors.ts'
import { within } from '../base/within.ts'

/**
 * The answer after a time limit: a stopped database neither answers nor closes the connection. The caller cannot know
 * whether the work was done, as after any lost connection.
 */
export function unavailable(): Promise<never> {
  return Promise.reject(new ServiceError('unavailable'))
}

/**
 * Wraps the handler: answers 503 if no answer has begun after `ms`. An answer that has begun has no time limit, because a
 * handler that returns a stream settles only at the stream's end.
 */
export function answerInTime(answer: RouteOptions['handler'], ms: number): RouteOptions['handler'] {
  return function (request: FastifyRequest, reply: FastifyReply) {
    const result: unknown = answer.call(this, request, reply)
    if (!(result instanceof Promise)) return result
    return within(ms, result, () => (reply.raw.headersSent ? result : unavailable()))
  }
}
