// What makes two requests of one operation the same: what they are about and their body, in one canonical form.
import { sha256 } from '../base/digest.ts'

/** A client's key for one logical action, with the digest of what it asked for. */
export interface Idempotency {
  key: string
  requestHash: Buffer
}

/**
 * SHA-256 over the parameters of the path, decoded, and the body with its object keys sorted, so that spelling does not
 * matter, content does.
 */
export function requestHash(params: object, body: unknown): Buffer {
  return sha256(`${JSON.stringify(withSortedKeys(params))}\n${JSON.stringify(withSortedKeys(body))}`)
}

function withSortedKeys(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map(withSortedKeys)
  const sorted: Record<string, unknown> = {}
  for (const name of Object.keys(value).sort())
    sorted[name] = withSortedKeys((value as Record<string, unknown>)[name])
  return sorted
}
