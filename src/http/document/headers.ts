// The headers of answers in the OpenAPI document.
import type { ErrorCode } from '../errors.ts'

const header = (description: string, schema: object, example: unknown) => ({ description, schema, example })
const text = { type: 'string' }

/** The headers that many answers have. */
export const commonHeaders: Readonly<Record<string, object>> = {
  'x-request-id': header('The id of this request, as it appears in the logs.', text, 'Qm3x8Zb1Yt0k1a'),
  'RateLimit-Policy': header(
    'Requests allowed for the key (q) per window in seconds (w).',
    text,
    '"requests";q=600;w=60',
  ),
  RateLimit: header(
    'Requests left (r), and seconds until all are available again (t).',
    text,
    '"requests";r=599;t=42',
  ),
  'send-limit': header(
    'With `send_limit_exceeded`: the limit by its name in `GET /v1/me`, its size (q), its window in seconds (w), and the seconds until the window ends (t).',
    text,
    '"recipientsPerDay";q=5000;w=86400;t=19402',
  ),
  'retry-after': header('Seconds to wait before a retry.', { type: 'integer', minimum: 1 }, 2),
}

/** References to the headers of an answer with this status. `isCounted`: its requests count against the caller's rate. */
export function headersOf(
  status: number,
  { codes = [], isCounted = true }: { codes?: readonly ErrorCode[]; isCounted?: boolean } = {},
): Record<string, object> {
  const names = ['x-request-id']
  // An unknown caller has no rate, and an unavailable database does not know it.
  if (isCounted && status !== 401 && status !== 503) names.push('RateLimit-Policy', 'RateLimit')
  if ([423, 429, 503].includes(status)) names.push('retry-after')
  if (codes.includes('send_limit_exceeded')) names.push('send-limit')
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

/** Describes the headers that only one operation has. */
export function describeHeaders(headers: Readonly<Record<string, string>>): Record<string, object> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: text }]),
  )
}
