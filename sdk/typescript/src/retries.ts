// Which failures are repeated, and after which wait.
import { ConnectionFailedError, type PosthornError } from './errors.ts'

const firstWaitMs = 500
const longestWaitMs = 8_000

/** `attempt` counts from 1. `random` spreads the retries of many clients. */
export function waitBefore(attempt: number, retryAfterSeconds: number | null, random: number): number {
  const baseMs =
    retryAfterSeconds === null
      ? Math.min(longestWaitMs, firstWaitMs * 2 ** (attempt - 1))
      : retryAfterSeconds * 1_000
  return spread(baseMs, random)
}

/** Up to half as long again, never shorter: `retry-after` says when a retry can succeed. */
export function spread(baseMs: number, random: number): number {
  return baseMs * (1 + random / 2)
}

/** Whether a request is worth repeating. 500 is an error of the service, which another request would meet again. */
export function isRepeatable({ isTemporary, status }: PosthornError): boolean {
  return isTemporary && (status === null || status < 500 || [502, 503, 504].includes(status))
}

/** Whether the service may have done what the request asked for. */
export function isOutcomeUnknown(error: PosthornError): boolean {
  return error instanceof ConnectionFailedError || (error.status ?? 0) > 500
}
