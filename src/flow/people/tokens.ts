// Secrets of sessions and links: 256 bits, shown once and stored as a digest.
import { randomBytes } from 'node:crypto'
import { sha256 } from '../../base/digest.ts'

const pattern = /^[A-Za-z0-9_-]{43}$/

/** A new secret, and the digest to store. */
export function newToken(): { token: string; hash: Buffer } {
  const token = randomBytes(32).toString('base64url')
  return { token, hash: sha256(token) }
}

/** The token's stored digest. Null if the text cannot be a token. */
export function hashToken(token: string): Buffer | null {
  return pattern.test(token) ? sha256(token) : null
}

/** The token that a page must send with the cookie to change anything. Other sites can send the cookie, but not this. */
export function pageToken(token: string): string {
  return sha256(`page token of ${token}`).toString('base64url')
}
