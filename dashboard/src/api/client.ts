// The clients by which pages call the service: typed by its API documents, with the token that changes need.
import createClient, { type Middleware } from 'openapi-fetch'
import type { components, paths } from './app.gen.ts'

/** The operations of a document, keyed by their paths without this prefix. */
export type Under<Prefix extends string, Paths> = {
  [Path in keyof Paths as Path extends `${Prefix}${infer Rest}` ? Rest : Path]: Paths[Path]
}
export type Schemas = components['schemas']

/** An answer that is not a success, with the API's own code and message. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  /** The wait before the next try, if the answer names one. */
  readonly retryAfterSeconds: number | null

  constructor(response: Response, body: { error?: unknown; message?: unknown } | undefined) {
    super(typeof body?.message === 'string' ? body.message : `${response.status} ${response.statusText}`)
    this.name = 'ApiError'
    this.status = response.status
    this.code = typeof body?.error === 'string' ? body.error : 'unknown'
    const wait = Number(response.headers.get('retry-after') ?? Number.NaN)
    this.retryAfterSeconds = Number.isFinite(wait) ? wait : null
  }
}

let changeToken: string | null = null
let whenSignedOut: () => Promise<void> = async () => {}

/** Sets the token that every change must carry from now on. It belongs to the session. */
export function setChangeToken(token: string | null): void {
  changeToken = token
}

/** Sets the function to call when an answer says that the session has ended. */
export function onSignedOut(run: () => Promise<void>): void {
  whenSignedOut = run
}

export function changeHeaders(): Record<string, string> {
  return changeToken === null ? {} : { 'x-posthorn-token': changeToken }
}

const tokens: Middleware = {
  onRequest({ request }) {
    if (request.method === 'GET' || request.method === 'HEAD') return
    for (const [name, value] of Object.entries(changeHeaders())) request.headers.set(name, value)
  },
}

/** A client of the operations under this prefix. Its changes carry the token of the session. */
export function connect<Paths extends object>(prefix: string) {
  const client = createClient<Paths>({ baseUrl: prefix, credentials: 'same-origin' })
  client.use(tokens)
  return client
}

export const api = connect<Under<'/app', paths>>('/app')

interface Answer<Body> {
  data?: Body
  error?: unknown
  response: Response
}

/**
 * Returns the body of a success, as in `await read(api.GET('/v1/inboxes'))`. Throws ApiError otherwise, or fetch's
 * TypeError if the network is down.
 */
export async function read<Body>(answer: Promise<Answer<Body>>): Promise<Body> {
  const { data: body, error, response } = await answer
  if (response.ok) return body as Body
  const refusal = new ApiError(response, error as { error?: unknown } | undefined)
  // Without a token there was no session that could end.
  if (refusal.code === 'session_required' && changeToken !== null) void whenSignedOut()
  throw refusal
}
