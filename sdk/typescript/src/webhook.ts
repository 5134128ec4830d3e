// Verifies calls of webhooks by Standard Webhooks (https://www.standardwebhooks.com).
import { WebhookVerificationError } from './errors.ts'
import type { WebhookEvent } from './types.ts'

/** A call that is older, or comes from further in the future, may be a copy that an attacker replays. */
const windowSeconds = 300

interface VerifyOptions {
  /** Replaces the time, in tests. */
  nowSeconds?: number
}

/**
 * Returns the event of a call. `body` is the raw body, before it is parsed. Throws WebhookVerificationError. A call can
 * be repeated: remember the `id` of each event.
 */
export async function verifyWebhook(
  secret: string,
  body: string | Uint8Array,
  headers: Headers | Record<string, string | string[] | undefined>,
  { nowSeconds = Date.now() / 1_000 }: VerifyOptions = {},
): Promise<WebhookEvent> {
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) =>
    readHeader(headers, `webhook-${name}`),
  )
  if (!id || !timestamp || !signatures)
    throw refuse('missing_header', 'A header of Standard Webhooks is missing.')
  const isWithin = /^\d{1,15}$/.test(timestamp) && Math.abs(nowSeconds - Number(timestamp)) <= windowSeconds
  if (!isWithin) throw refuse('outside_window', 'The timestamp is not within 300 seconds of now.')
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  if (!(await isSigned(secret, `${id}.${timestamp}.`, bytes, signatures)))
    throw refuse('invalid_signature', 'No signature matches.')
  return { ...parseObject(bytes), id } as WebhookEvent
}

function readHeader(headers: Parameters<typeof verifyWebhook>[2], name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined
  const [, value] = Object.entries(headers).find(([given]) => given.toLowerCase() === name) ?? []
  return typeof value === 'string' ? value : value?.[0]
}

async function isSigned(
  secret: string,
  head: string,
  body: Uint8Array,
  signatures: string,
): Promise<boolean> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const raw = decodeBase64(secret.replace(/^whsec_/, ''))
  if (raw === null) throw new TypeError('The secret of the webhook must begin with whsec_ and be base64.')
  const key = await crypto.subtle.importKey('raw', raw, algorithm, false, ['verify'])
  const first = new TextEncoder().encode(head)
  const signed = new Uint8Array(first.length + body.length)
  signed.set(first)
  signed.set(body, first.length)
  // While a secret is rotated, a call has a signature by each of the two.
  for (const signature of signatures.split(' ')) {
    const bytes = signature.startsWith('v1,') ? decodeBase64(signature.slice('v1,'.length)) : null
    // Compares in constant time.
    if (bytes !== null && (await crypto.subtle.verify('HMAC', key, bytes, signed))) return true
  }
  return false
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
  } catch {
    // It is no base64.
    return null
  }
}

function parseObject(bytes: Uint8Array): object {
  try {
    const body: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body
  } catch {
    // It is no JSON, so the body is refused below.
  }
  throw refuse('invalid_body', 'The body is no JSON object.')
}

function refuse(code: string, message: string): WebhookVerificationError {
  return new WebhookVerificationError(message, { code })
}
