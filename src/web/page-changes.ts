// Changes that pages ask for: each comes from a page of ours, which shows its token beside the cookie.
import { timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { ServiceError } from '../base/errors.ts'

type Asking = Pick<FastifyRequest, 'headers'>

/**
 * Refuses a change that no page of these origins asked for. Every browser sends the field with whatever is not a plain link
 * (Fetch 3.2), and no page can choose it.
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

// RFC 9110 9.2.1: these are safe.
export function isChange({ method }: { method: string }): boolean {
  return method !== 'GET' && method !== 'HEAD'
}
