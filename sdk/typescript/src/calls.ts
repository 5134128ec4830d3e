// Calls of operations: the request, its retries until a deadline, and its answer.

import { type Download, makeDownload, readContents } from './attachments.ts'
import { type Clock, systemClock } from './clock.ts'
import { ConnectionFailedError, PosthornError, readError } from './errors.ts'
import { Pages } from './pages.ts'
import { isOutcomeUnknown, isRepeatable, waitBefore } from './retries.ts'

export interface Operation {
  method: string
  path: string
  /** The part of the request that carries the fields of a call. */
  fields: 'query' | 'body'
  /** Takes an idempotency key. */
  hasKey?: boolean
  /** A second request has a second effect, and no key prevents it. */
  isOnce?: boolean
}

export interface CallOptions {
  /** The time for the call with all its retries. */
  deadlineMs?: number
  /** Ends the call. It then throws the signal's reason. */
  signal?: AbortSignal
}

export interface SendOptions extends CallOptions {
  /** One for each action that must happen once. Without it the client makes one for this call. */
  idempotencyKey?: string
}

export interface PosthornOptions {
  /** The address of the service, such as `http://127.0.0.1:8025`. */
  baseUrl: string
  apiKey: string
  /** The time for a call with all its retries. Default: 60 s. */
  deadlineMs?: number
  /** The time for one request, until its answer begins. Default: 30 s. */
  attemptTimeoutMs?: number
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch
  /** Replaces the time, in tests. */
  clock?: Clock
}

type Fields = object | undefined

interface Prepared {
  url: string
  init: { method: string; headers: Record<string, string>; body?: string; redirect: 'manual' }
  /** Seconds for which the service may hold the answer back. */
  heldMs: number
}

const longestTimerMs = 2 ** 31 - 1

/** Calls the operations of one service with one key. */
export class Calls {
  readonly clock: Clock
  readonly attemptTimeoutMs: number
  readonly #options: PosthornOptions
  readonly #fetch: typeof fetch

  constructor(options: PosthornOptions) {
    this.#options = options
    this.clock = options.clock ?? systemClock
    this.attemptTimeoutMs = options.attemptTimeoutMs ?? 30_000
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init))
  }

  json<Result>(operation: Operation, ids: string[], fields?: Fields, options?: SendOptions): Promise<Result> {
    return this.#repeat(operation, ids, fields, options, (response) => response.json() as Promise<Result>)
  }

  text(operation: Operation, ids: string[], fields?: Fields, options?: CallOptions): Promise<string> {
    return this.#repeat(operation, ids, fields, options, (response) => response.text())
  }

  async nothing(operation: Operation, ids: string[], fields?: Fields, options?: CallOptions): Promise<void> {
    await this.#repeat(operation, ids, fields, options, (response) => response.arrayBuffer())
  }

  download(operation: Operation, ids: string[], fields?: Fields, options?: CallOptions): Promise<Download> {
    return this.#repeat(operation, ids, fields, options, async (response) => makeDownload(response))
  }

  pages<Item, Page extends { nextCursor: string | null }>(
    items: keyof Page,
    operation: Operation,
    ids: string[],
    query?: Fields,
    options?: CallOptions,
  ): Pages<Item, Page> {
    const load = (cursor: string | undefined) =>
      this.json<Page>(operation, ids, cursor === undefined ? query : { ...query, cursor }, options)
    return new Pages(items, load)
  }

  /** Opens a stream by one request, without retries. */
  stream(operation: Operation, headers: Record<string, string>, signal?: AbortSignal): Promise<Response> {
    const prepared = this.#prepare(operation, [], undefined, headers)
    return this.#attempt(prepared, this.attemptTimeoutMs, signal, async (response) => response)
  }

  async #repeat<Result>(
    operation: Operation,
    ids: string[],
    fields: Fields,
    options: SendOptions = {},
    read: (response: Response) => Promise<Result>,
  ): Promise<Result> {
    const key: Record<string, string> = operation.hasKey
      ? { 'idempotency-key': options.idempotencyKey ?? crypto.randomUUID() }
      : {}
    const prepared = this.#prepare(operation, ids, await readContents(fields), key)
    const { deadlineMs = (this.#options.deadlineMs ?? 60_000) + prepared.heldMs, signal } = options
    const untilMs = this.clock.nowMs() + deadlineMs
    let isUnknown = false
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(prepared, untilMs - this.clock.nowMs(), signal, read)
      } catch (error) {
        // Everything else is the caller's signal.
        if (!(error instanceof PosthornError)) throw error
        // The first request deleted the object, although its answer was lost.
        if (isUnknown && operation.method === 'DELETE' && error.status === 404) return undefined as Result
        const isAllowed = operation.isOnce ? error.status === 429 : isRepeatable(error)
        const waitMs = waitBefore(attempt, error.retryAfterSeconds, this.clock.random())
        if (!isAllowed || this.clock.nowMs() + waitMs >= untilMs) throw error
        isUnknown ||= isOutcomeUnknown(error)
        await this.clock.sleep(waitMs, signal)
      }
    }
  }

  #prepare(operation: Operation, ids: string[], fields: Fields, headers: Record<string, string>): Prepared {
    let used = 0
    const path = operation.path.replaceAll(/\{\w+\}/g, () => encodeURIComponent(ids[used++] ?? ''))
    const url = new URL(this.#options.baseUrl.replace(/\/+$/, '') + path)
    const isBody = operation.fields === 'body' && fields !== undefined
    const query = isBody ? {} : (fields ?? {})
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value))
    const { wait = 0 } = query as { wait?: number }
    const content: Record<string, string> = isBody ? { 'content-type': 'application/json' } : {}
    return {
      url: url.href,
      init: {
        method: operation.method,
        headers: { 'x-api-key': this.#options.apiKey, ...content, ...headers },
        // A redirect could take the key to another host.
        redirect: 'manual',
        ...(isBody && { body: JSON.stringify(fields) }),
      },
      heldMs: wait * 1_000,
    }
  }

  /** Sends one request. The time ends when `read` is finished. */
  async #attempt<Result>(
    { url, init, heldMs }: Prepared,
    leftMs: number,
    signal: AbortSignal | undefined,
    read: (response: Response) => Promise<Result>,
  ): Promise<Result> {
    signal?.throwIfAborted()
    const late = new AbortController()
    const limitMs = Math.min(this.attemptTimeoutMs + heldMs, leftMs, longestTimerMs)
    const timer = setTimeout(() => late.abort(), limitMs)
    const either = signal ? AbortSignal.any([late.signal, signal]) : late.signal
    try {
      const response = await this.#fetch(url, { ...init, signal: either })
      if (!response.ok) throw await readError(response)
      return await read(response)
    } catch (error) {
      if (error instanceof PosthornError) throw error
      signal?.throwIfAborted()
      const [code, message] = late.signal.aborted
        ? ['timed_out', `No answer of ${url} came in ${limitMs} ms.`]
        : ['connection_failed', `The connection to ${url} failed.`]
      throw new ConnectionFailedError(message, { code, isTemporary: true, cause: error })
    } finally {
      clearTimeout(timer)
    }
  }
}
