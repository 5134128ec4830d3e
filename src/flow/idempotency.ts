// What makes two requests the same: the path and the body, in one canonical form.
import { sha256 } from '../base/digest.ts'

/** A client's key for one logical action, with the digest of what it asked for. */
export interface Idempotency {
  key: string
  requestHash: Buffer
}

/** SHA-256 over the path and the body with its object keys sorted, so that spelling does not matter, content does. */
export function requestHash(path: string, body: unknown): Buffer {
  return sha256(`${path}\n${JSON.stringify(withSortedKeys(body))}`)
}

function withSortedKeys(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map(withSortedKeys)
  const sorted: Record<string, unknown> = {}
  for (const name of Object.keys(value).sort())
    sorted[name] = withSortedKeys((value as Record<string, unknown>)[name])
  return sorted
}
