// What makes two requests the same: the path and the body, in one canonical form.
import { createHash } from 'node:crypto'

/** A client's key for one logical action, with the digest of what it asked for. */
export interface Idempotency {
  key: string
  requestHash: Buffer
}

/** SHA-256 over the path and the body with its object keys sorted, so that spelling does not matter, content does. */
export function requestHash(path: string, body: unknown): Buffer {
  return createHash('sha256').update(path).update('\n').update(JSON.stringify(body, sortKeys)).digest()
}

function sortKeys(_key: string, value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}
