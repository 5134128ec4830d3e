// The tour's requests to a service: one request with its answer and time, or one line that explains the failure.
import { setTimeout as pause } from 'node:timers/promises'

export interface TourRequest {
  method: 'GET' | 'POST' | 'DELETE'
  path: string
  idempotencyKey?: string
  body?: object
}

export interface TourExchange {
  request: TourRequest
  status: number
  /** JSON, or text if the answer is a mail or a file. For a call made by the service: its body. */
  answer: unknown
  durationMs: number
}

/** Names and values of an answer, for people. */
type Excerpt = [name: string, value: string][]

export interface TourStep extends TourExchange {
  title: string
  /** Explains the answer in a sentence or two. */
  meaning: string
  excerpt: Excerpt
}

/** Ends the tour. The message is the line to print. */
export class TourFault extends Error {}

const requestLimitMs = 15_000
const waitLimitMs = 30_000
/** The pause between two polls. */
export const pollMs = 40

/** Waits until `find` returns a value. Throws a TourFault with `fault` if it returns none in time. */
export async function waitFor<Found>(find: () => Found | Promise<Found>, fault: () => string) {
  const untilMs = performance.now() + waitLimitMs
  for (;;) {
    const found = await find()
    if (found !== undefined && found !== null) return found
    if (performance.now() > untilMs) throw new TourFault(fault())
    await pause(pollMs)
  }
}

/** Calls the API of one service with one key. Throws a TourFault if there is no valid answer. */
export class TourApi {
  /** The last request with its answer. */
  last: TourExchange | null = null
  readonly #http: string
  readonly #secret: string

  constructor(http: string, secret: string) {
    this.#http = http
    this.#secret = secret
  }

  /** Returns the body of the answer, whose status must be one of `statuses`. */
  async ask<Body>(request: TourRequest, ...statuses: number[]): Promise<Body> {
    const startedMs = performance.now()
    const response = await this.#fetch(request)
    const text = await response.text()
    if (!statuses.includes(response.status))
      throw new TourFault(
        `${request.method} ${request.path} returned ${response.status} ${text.slice(0, 500)}`,
      )
    const isJson = response.headers.get('content-type')?.startsWith('application/json')
    const answer = isJson ? JSON.parse(text) : text
    this.last = { request, status: response.status, answer, durationMs: performance.now() - startedMs }
    return answer
  }

  async get<Body>(path: string): Promise<Body> {
    return await this.ask<Body>({ method: 'GET', path }, 200)
  }

  /** Polls until `find` returns a value of the answer. The step's time is that of the whole wait. */
  async getUntil<Body, Found>(path: string, what: string, find: (body: Body) => Found | undefined) {
    const startedMs = performance.now()
    const found = await waitFor(
      async () => find(await this.get<Body>(path)),
      () => `${what} within ${waitLimitMs / 1000} s: "posthorn queue list" shows waiting mail`,
    )
    this.last!.durationMs = performance.now() - startedMs
    return found
  }

  /** Returns the last request as a step, with an excerpt of its answer. */
  step(title: string, meaning: string, excerpt: Record<string, string> | Excerpt): TourStep {
    return {
      title,
      meaning,
      ...this.last!,
      excerpt: Array.isArray(excerpt) ? excerpt : Object.entries(excerpt),
    }
  }

  async #fetch({ method, path, idempotencyKey, body }: TourRequest): Promise<Response> {
    const headers = {
      'x-api-key': this.#secret,
      ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
      ...(body && { 'content-type': 'application/json' }),
    }
    const init = { method, headers, signal: AbortSignal.timeout(requestLimitMs) }
    try {
      return await fetch(this.#http + path, { ...init, body: body ? JSON.stringify(body) : null })
    } catch (error) {
      // fetch puts the network error into the cause.
      const { message } = ((error as Error).cause ?? error) as Error
      throw new TourFault(`${method} ${this.#http}${path} got no answer: ${message}`)
    }
  }
}
