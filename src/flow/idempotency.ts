// The digest that two requests of one operation share if they are the same: path parameters and body in canonical form.
import { sha256 } from '../base/digest.ts'

/** A client's key for one logical action, with the digest of its request. */
export interface Idempotency {
  key: string
  requestHash: Buffer
}

/** SHA-256 over the decoded path parameters and the body with sorted object keys. Spelling does not matter, content does. */
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
