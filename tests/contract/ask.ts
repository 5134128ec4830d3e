// Sends one request exactly as given and returns the whole answer.

export interface Request {
  method: string
  /** Path with its query. */
  path: string
  secret?: string
  idempotencyKey?: string
  headers?: Record<string, string>
  /** Sent as JSON, except that a string or bytes are sent unchanged. */
  body?: unknown
}

export interface Answer {
  status: number
  headers: Headers
  bytes: Buffer
  /** Null if the body is not JSON. */
  body: Record<string, unknown> | null
}

/** Every answer must come within this time, whatever fails. */
const deadlineMs = 30_000

export async function ask(base: string, request: Request): Promise<Answer> {
  const { method, path, secret, idempotencyKey, body } = request
  const isRaw = typeof body === 'string' || Buffer.isBuffer(body)
  const headers: Record<string, string> = {
    ...(secret !== undefined && { 'x-api-key': secret }),
    ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...request.headers,
  }
  const response = await fetch(base + path, {
    method,
    headers,
    signal: AbortSignal.timeout(deadlineMs),
    body: body === undefined ? null : isRaw ? body : JSON.stringify(body),
  })
  const bytes = await readBytes(response)
  const isJson = bytes.length > 0 && response.headers.get('content-type')?.startsWith('application/json')
  const { status, headers: answered } = response
  return { status, headers: answered, bytes, body: isJson ? JSON.parse(bytes.toString()) : null }
}

/** Reads all bytes, or the first chunk of the live stream, which never ends. */
async function readBytes(response: Response): Promise<Buffer> {
  if (!response.headers.get('content-type')?.startsWith('text/event-stream'))
    return Buffer.from(await response.arrayBuffer())
  const reader = response.body!.getReader()
  const { value } = await reader.read()
  await reader.cancel()
  return Buffer.from(value ?? '')
}
