// Bounds how long an operation may take to begin its answer.
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { ServiceError } from '../base/errors.ts'
import { within } from '../base/within.ts'

/**
 * A stopped database answers nothing and breaks no connection. As with any lost connection, the caller then cannot know
 * whether the work was done.
 */
export function unavailable(): Promise<never> {
  return Promise.reject(new ServiceError('unavailable'))
}

/**
 * Wraps the handler: answers 503 if no answer has begun after `ms`. An answer that is being sent by then goes on for as long
 * as its reader takes. A handler that returns a stream settles only at the stream's end.
 */
export function answerInTime(answer: RouteOptions['handler'], ms: number): RouteOptions['handler'] {
  return function (request: FastifyRequest, reply: FastifyReply) {
    const result: unknown = answer.call(this, request, reply)
    if (!(result instanceof Promise)) return result
    return within(ms, result, () => (reply.raw.headersSent ? result : unavailable()))
  }
}
