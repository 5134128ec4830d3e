// Calls of operations: the request, its retries until a deadline, and its answer.

import { type Download, makeDownload, readContents } from './attachments.ts'
import { readBytes } from './bytes.ts'
import { type Clock, systemClock } from './clock.ts'
import { ConnectionFailedError, errorOf, PosthornError, unexpected } from './errors.ts'
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
  /** The time for one request and its answer. A download or a stream must begin in that time. Default: 30 s. */
  attemptTimeoutMs?: number
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch
  /** Replaces the time, in tests. */
  clock?: Clock
}

type Fields = object | undefined

interface Prepared {
  url: string
  init: { method: string; headers: Headers; body?: string; redirect: 'manual' }
  /** The time for which the service may hold the answer back. */
  heldMs: number
}

interface Reading<Result> {
  /** Whether the body is read later, by the caller. */
  isLater: boolean
  read(response: Response): Promise<Result>
}

/** Security: a proxy or another server could answer without end, or with a small body that unpacks to a large one. */
const maxBytes = 128 * 2 ** 20
const maxErrorBytes = 2 ** 20

const asText: Reading<{ response: Response; text: string }> = {
  isLater: false,
  read: async (response) => ({ response, text: await readText(response, maxBytes) }),
}
const asNothing: Reading<void> = {
  isLater: false,
  read: async (response) => void (await readBytes(response, maxErrorBytes)),
}
const asDownload: Reading<Download> = { isLater: true, read: async (response) => makeDownload(response) }
const asStream: Reading<Response> = { isLater: true, read: async (response) => response }

async function readText(response: Response, limitBytes: number): Promise<string> {
  return new TextDecoder().decode(await readBytes(response, limitBytes))
}

const longestTimerMs = 2 ** 31 - 1

/** Calls the operations of one service with one key. */
export class Calls {
  readonly clock: Clock
  readonly attemptTimeoutMs: number
  readonly #options: PosthornOptions
  readonly #fetch: typeof fetch

  /** Throws a TypeError for an address or a key that no request can carry. */
  constructor(options: PosthornOptions) {
    checkBaseUrl(options.baseUrl)
    // Security: messages of errors are logged, so they must not contain the key.
    if (!/^[\x21-\x7e]+$/.test(options.apiKey))
      throw new TypeError('apiKey must be one word, without line ends.')
    this.#options = options
    this.clock = options.clock ?? systemClock
    this.attemptTimeoutMs = options.attemptTimeoutMs ?? 30_000
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init))
  }

  async json<Result>(
    operation: Operation,
    ids: string[],
    fields?: Fields,
    options?: SendOptions,
  ): Promise<Result> {
    const { response, text } = await this.#repeat(operation, ids, fields, options, asText)
    try {
      return JSON.parse(text) as Result
    } catch {
      // A proxy answered with a page of its own.
      throw unexpected(response)
    }
  }

  async text(operation: Operation, ids: string[], fields?: Fields, options?: CallOptions): Promise<string> {
    return (await this.#repeat(operation, ids, fields, options, asText)).text
  }

  nothing(operation: Operation, ids: string[], fields?: Fields, options?: CallOptions): Promise<void> {
    return this.#repeat(operation, ids, fields, options, asNothing)
  }

  download(operation: Operation, ids: string[], fields?: Fields, options?: CallOptions): Promise<Download> {
    return this.#repeat(operation, ids, fields, options, asDownload)
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
    return this.#attempt(prepared, this.attemptTimeoutMs, signal, asStream)
  }

  async #repeat<Result>(
    operation: Operation,
    ids: string[],
    fields: Fields,
    options: SendOptions = {},
    reading: Reading<Result>,
  ): Promise<Result> {
    const key: Record<string, string> = operation.hasKey
      ? { 'idempotency-key': options.idempotencyKey ?? crypto.randomUUID() }
      : {}
    const prepared = this.#prepare(operation, ids, await readContents(fields), key)
    const { deadlineMs = this.#options.deadlineMs ?? 60_000, signal } = options
    const untilMs = this.clock.nowMs() + deadlineMs + prepared.heldMs
    let isUnknown = false
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(prepared, untilMs - this.clock.nowMs(), signal, reading)
      } catch (error) {
        // Everything else is the caller's signal.
        if (!(error instanceof PosthornError)) throw error
        // The first request deleted the object, although its answer was lost. A proxy's own 404 has another code.
        if (isUnknown && operation.method === 'DELETE' && error.code === 'not_found')
          return undefined as Result
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
    const path = operation.path.replaceAll(/\{\w+\}/g, () => segmentOf(ids[used++]))
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
        headers: makeHeaders({ 'x-api-key': this.#options.apiKey, ...content, ...headers }),
        // A redirect could take the key to another host.
        redirect: 'manual',
        ...(isBody && { body: JSON.stringify(fields) }),
      },
      heldMs: wait * 1_000,
    }
  }

  /** Sends one request. Its time ends when it is read, or begins to be read later. */
  async #attempt<Result>(
    { url, init, heldMs }: Prepared,
    leftMs: number,
    signal: AbortSignal | undefined,
    { isLater, read }: Reading<Result>,
  ): Promise<Result> {
    signal?.throwIfAborted()
    const ending = new AbortController()
    const limitMs = Math.max(0, Math.min(this.attemptTimeoutMs + heldMs, leftMs, longestTimerMs))
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      ending.abort()
    }, limitMs)
    // A signal may live as long as the program, so nothing may stay attached to it.
    const abort = () => ending.abort(signal?.reason)
    signal?.addEventListener('abort', abort)
    const send = this.#fetch
    try {
      const response = await send(url, { ...init, signal: ending.signal })
      if (!response.ok) throw errorOf(response, await readText(response, maxErrorBytes))
      return await read(response)
    } catch (error) {
      if (error instanceof PosthornError) throw error
      signal?.throwIfAborted()
      const { origin, pathname } = new URL(url)
      const [code, message] = isLate
        ? ['timed_out', `No answer of ${origin}${pathname} came in ${limitMs} ms.`]
        : isOfCertificate(error)
          ? ['certificate_invalid', `The certificate of ${origin} is not valid here.`]
          : ['connection_failed', `The connection to ${origin}${pathname} failed.`]
      throw new ConnectionFailedError(message, { code, isTemporary: true, cause: error })
    } finally {
      clearTimeout(timer)
      if (!isLater) signal?.removeEventListener('abort', abort)
    }
  }
}

/** Codes of OpenSSL and Node. Other runtimes have none, and their words could be those of the address. */
const ofCertificate = new Set([
  ...['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID', 'CERT_REVOKED', 'CERT_UNTRUSTED', 'CERT_SIGNATURE_FAILURE'],
  ...['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_GET_ISSUER_CERT'],
  ...['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'ERR_TLS_CERT_ALTNAME_INVALID'],
])

function isOfCertificate(error: unknown): boolean {
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } | null }
  return ofCertificate.has(String(code)) || ofCertificate.has(String(cause?.code))
}

function checkBaseUrl(text: string): void {
  const url = URL.canParse(text) ? new URL(text) : null
  const isPlain =
    url && /^https?:$/.test(url.protocol) && !(url.username || url.password || url.search || url.hash)
  if (!isPlain) throw new TypeError('baseUrl must be http or https, without user, query and fragment.')
}

/** An id that is empty, or a step up, would lead to another operation. */
function segmentOf(id: unknown): string {
  if (typeof id !== 'string' || /^\.{0,2}$/.test(id))
    throw new TypeError('An id must be a text, and not empty.')
  return encodeURIComponent(id)
}

function makeHeaders(headers: Record<string, string>): Headers {
  try {
    return new Headers(headers)
  } catch {
    // Security: the message of the runtime contains the value.
    throw new TypeError(`A header has a character that is not allowed: ${Object.keys(headers).join(', ')}.`)
  }
}
