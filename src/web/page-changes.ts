// Checks that one of our pages requested a change, by its origin and by a token that it sends in addition to the cookie.
import { timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { ServiceError } from '../base/errors.ts'

type Asking = Pick<FastifyRequest, 'headers'>

/**
 * Refuses a change that no page of these origins asked for. Every browser sends Origin with all requests except plain
 * links (Fetch 3.2), and no page can choose its value.
 */
export function requireOrigin({ headers: { origin } }: Asking, origins: readonly string[]): void {
  if (typeof origin !== 'string' || !origins.includes(origin)) throw new ServiceError('wrong_origin')
}

/** Refuses a change without the token of the session's page. */
export function requirePageToken({ headers }: Asking, token: string): void {
  const [given, expected] = [Buffer.from(String(headers['x-posthorn-token'])), Buffer.from(token)]
  if (given.length !== expected.length || !timingSafeEqual(given, expected))
    throw new ServiceError('wrong_origin')
}

// RFC 9110 9.2.1: GET and HEAD are safe.
export function isChange({ method }: { method: string }): boolean {
  return method !== 'GET' && method !== 'HEAD'
}
