// Secrets of sessions and links: 256 bits that are handed out once, and kept as their digest.
import { randomBytes } from 'node:crypto'
import { sha256 } from '../../base/digest.ts'

const pattern = /^[A-Za-z0-9_-]{43}$/

/** A new secret, and the digest that it is kept by. */
export function newToken(): { token: string; hash: Buffer } {
  const token = randomBytes(32).toString('base64url')
  return { token, hash: sha256(token) }
}

/** The digest that it would be kept by; null where it can be no token. */
export function hashToken(token: string): Buffer | null {
  return pattern.test(token) ? sha256(token) : null
}

/** What a page must show beside the cookie before it changes anything: whoever only has the browser send the cookie does not know it. */
export function pageToken(token: string): string {
  return sha256(`page token of ${token}`).toString('base64url')
}
