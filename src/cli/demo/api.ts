// What the tour asks of a service: one request, its answer and its time, or one line that says what went wrong.
import { setTimeout as pause } from 'node:timers/promises'

export interface TourRequest {
  method: 'GET' | 'POST' | 'DELETE'
  path: string
  idempotencyKey?: string
  body?: object
}

export interface Step {
  title: string
  /** What there is to see in the answer, in a sentence or two. */
  meaning: string
  request: TourRequest
  status: number
  /** JSON, or text where the answer is a mail or a file; of a call that the service makes, what it tells. */
  answer: unknown
  /** What a person reads of the answer: names and values. */
  excerpt: [name: string, value: string][]
  durationMs: number
}

export interface Inbox {
  id: string
  localPart: string
  address: string
}

export interface Message {
  id: string
  threadId: string
  direction: 'inbound' | 'outbound'
  internetMessageId: string
  inReplyTo: string | null
  references: string[]
  from: { email: string }
  subject: string
  extractedText?: string
  attachments?: { id: string; filename: string; size: number; scanState: string }[]
  inboundSecurity?: { smtp: { remoteIp: string; helo: string } }
}

export interface Acceptance {
  message: Message
  submission: { id: string; status: string }
  replayed: boolean
}

export interface DeliveryEvent {
  type: string
  at: string
  recipient: string | null
  remote: { host: string; ip: string; tls: string | null } | null
  response: string | null
  classification: string | null
}

/** The tour cannot go on; the message is the line to print. */
export class TourFault extends Error {}

export interface Answer<Body> {
  status: number
  body: Body
  durationMs: number
}

const requestLimitMs = 15_000
const waitLimitMs = 30_000
/** How long to wait before asking again. */
export const pollMs = 40

/** Looks until there is something; a TourFault that says `fault` where nothing comes. */
export async function waitFor<Found>(look: () => Found | Promise<Found>, fault: () => string) {
  const untilMs = performance.now() + waitLimitMs
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== null) return found
    if (performance.now() > untilMs) throw new TourFault(fault())
    await pause(pollMs)
  }
}

/** Asks the API of one service with one key; whatever is not an answer is a TourFault. */
export class TourApi {
  readonly #http: string
  readonly #secret: string

  constructor(http: string, secret: string) {
    this.#http = http
    this.#secret = secret
  }

  /** The answer, whose status must be one of `statuses`. */
  async ask<Body>(request: TourRequest, ...statuses: number[]): Promise<Answer<Body>> {
    const startedMs = performance.now()
    const response = await this.#fetch(request)
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json')
    const answer = {
      status: response.status,
      body: isJson ? JSON.parse(text) : text,
      durationMs: performance.now() - startedMs,
    }
    if (!statuses.includes(answer.status))
      throw new TourFault(
        `${request.method} ${request.path} was answered ${answer.status} ${text.slice(0, 500)}`,
      )
    return answer
  }

  /** Asks again and again until the answer has what `find` looks for; the time is that of the whole wait. */
  async askUntil<Body, Found>(request: TourRequest, what: string, find: (body: Body) => Found | undefined) {
    const startedMs = performance.now()
    const look = async () => {
      const answer = await this.ask<Body>(request, 200)
      const found = find(answer.body)
      return found === undefined ? null : { ...answer, found, durationMs: performance.now() - startedMs }
    }
    const seconds = waitLimitMs / 1000
    return await waitFor(look, () => `${what} within ${seconds} s: "posthorn queue list" tells what waits`)
  }

  async #fetch({ method, path, idempotencyKey, body }: TourRequest): Promise<Response> {
    const headers = {
      'x-api-key': this.#secret,
      ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
      ...(body && { 'content-type': 'application/json' }),
    }
    const signal = AbortSignal.timeout(requestLimitMs)
    try {
      return await fetch(this.#http + path, {
        method,
        headers,
        signal,
        body: body ? JSON.stringify(body) : null,
      })
    } catch (error) {
      // fetch puts what went wrong on the wire into the cause.
      const { message } = ((error as Error).cause ?? error) as Error
      throw new TourFault(`${method} ${this.#http}${path} had no answer: ${message}`)
    }
  }
}

/** What a step shows of an answer, whatever else it says. */
export function outcome({
  status,
  body,
  durationMs,
}: Answer<unknown>): Pick<Step, 'status' | 'answer' | 'durationMs'> {
  return { status, answer: body, durationMs }
}
