// How long an operation may take to begin its answer.
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { ServiceError } from '../base/errors.ts'
import { within } from '../base/within.ts'

/**
 * A database that is stopped answers nothing and breaks no connection; whether the work was done is then not known, as with
 * any lost connection.
 */
export function unavailable(): Promise<never> {
  return Promise.reject(new ServiceError('unavailable'))
}

/**
 * The handler, whose answer is 503 where none has begun after `ms`. One that is being sent by then goes on for as long as its
 * reader takes: what a handler returns for a stream settles only with its end.
 */
export function answerInTime(answer: RouteOptions['handler'], ms: number): RouteOptions['handler'] {
  return function (request: FastifyRequest, reply: FastifyReply) {
    const result: unknown = answer.call(this, request, reply)
    if (!(result instanceof Promise)) return result
    return within(ms, result, () => (reply.raw.headersSent ? result : unavailable()))
  }
}
