// The headers of answers in the OpenAPI document.
import type { ErrorCode } from '../errors.ts'

const header = (description: string, schema: object, example: unknown) => ({ description, schema, example })
const text = { type: 'string' }

/** The headers that many answers have. */
export const commonHeaders: Readonly<Record<string, object>> = {
  'x-request-id': header('The id of this request, as logs have it.', text, 'Qm3x8Zb1Yt0k1a'),
  'RateLimit-Policy': header(
    'How many requests the key has (q) in how many seconds (w).',
    text,
    '"requests";q=600;w=60',
  ),
  RateLimit: header(
    'How many of them are left (r), and in how many seconds all are back (t).',
    text,
    '"requests";r=599;t=42',
  ),
  'send-limit': header(
    'Of `send_limit_exceeded`: the limit, by its name in `GET /v1/me`, how much it allows (q) in how many seconds (w), and in how many seconds the window ends (t).',
    text,
    '"recipientsPerDay";q=5000;w=86400;t=19402',
  ),
  'retry-after': header('In how many seconds to try again.', { type: 'integer', minimum: 1 }, 2),
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
