// The session cookie, and the origins that may change something.
import type { FastifyReply, FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'
import { ServiceError } from '../../base/errors.ts'

/** RFC 6265bis 4.1.3.2: with this prefix, a cookie is only for this host, for path `/`, and for HTTPS or loopback. */
const name = '__Host-posthorn'
const lifetimeSeconds = 30 * 86_400

/** Returns the token of the request, or null. */
export function sessionToken({ cookies }: FastifyRequest): string | null {
  return cookies[name] ?? null
}

/** Sets the session cookie. */
export function giveSession(reply: FastifyReply, token: string): void {
  reply.setCookie(name, token, {
    path: '/',
    httpOnly: true,
    secure: true,
    sameSite: 'lax',
    maxAge: lifetimeSeconds,
  })
}

/** Removes the session cookie. */
export function forgetSession(reply: FastifyReply): void {
  reply.setCookie(name, '', { path: '/', httpOnly: true, secure: true, sameSite: 'lax', maxAge: 0 })
}

/** Over plain HTTP people may sign in only on this machine: anywhere else their credentials could be read on the way. */
export function requirePrivate(request: FastifyRequest): void {
  if (isPrivate(request)) return
  throw new ServiceError(
    'wrong_origin',
    'Sign-in needs HTTPS. Set POSTHORN_HTTPS, or put an HTTPS proxy in front.',
  )
}

function isPrivate({ protocol, hostname }: FastifyRequest): boolean {
  if (protocol === 'https' || hostname === 'localhost') return true
  const address = hostname.replace(/^\[|\]$/g, '')
  return ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback'
}
