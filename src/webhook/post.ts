// Makes one webhook call: without redirects, with limits on time and on bytes read, and only to allowed addresses.
import type { Agent, Dispatcher } from 'undici'
import type { AddressGuard } from './address-guard.ts'
import { CallFault, type ConnectDeps, guardedConnector } from './connect.ts'

export interface CallAnswer {
  /** The receiver's status. Null if there was no answer. */
  status: number | null
  /** The first 2 KiB of the answer's body as text. Null if there was no answer. */
  body: string | null
  /** The error, in words for the customer. Null for a 2xx in time. */
  error: string | null
}

export interface PosterOptions extends ConnectDeps {
  guard: AddressGuard
  /** From the start of the call to the receiver's status. */
  timeoutMs?: number
}

const keptBytes = 2_048
/** Reading a body to its end keeps the connection. Beyond this size that costs more than a new connection. */
const drainedBytes = 64 * 1024
const bodyTimeoutMs = 2_000

/** Calls endpoints. Keeps connections for the next call. */
export class Poster {
  readonly #guard: AddressGuard
  readonly #deps: ConnectDeps
  readonly #timeoutMs: number
  #agent: Promise<Agent> | null = null

  constructor({ timeoutMs = 15_000, ...deps }: PosterOptions) {
    this.#guard = deps.guard
    this.#deps = deps
    this.#timeoutMs = timeoutMs
  }

  /** Posts the body. Never rejects. `signal` aborts the call. */
  async post(
    url: string,
    headers: Record<string, string>,
    body: string | Buffer,
    signal: AbortSignal,
  ): Promise<CallAnswer> {
    const refusal = this.#guard.refusalOf(url)
    if (refusal) return failed(`the URL ${refusal}`)
    const abort = new AbortController()
    const timer = setTimeout(() => abort.abort(new CallFault(timedOut(this.#timeoutMs))), this.#timeoutMs)
    const cut = () => abort.abort(new CallFault('interrupted'))
    signal.addEventListener('abort', cut, { once: true })
    try {
      const { origin, pathname, search } = new URL(url)
      this.#agent ??= openAgent(this.#deps)
      const agent = await this.#agent
      const answer = await agent.request({
        origin,
        path: pathname + search,
        method: 'POST',
        body,
        signal: abort.signal,
        headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
      })
      clearTimeout(timer)
      return toAnswer(answer.statusCode, await readStart(answer.body, abort))
    } catch (error) {
      // Network failures are exceptions here. The caller gets them as values.
      return failed(describeFault(abort.signal.aborted ? abort.signal.reason : error))
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', cut)
    }
  }

  async close(): Promise<void> {
    const agent = await this.#agent
    await agent?.destroy()
  }
}

/** A client for URLs of strangers. Loads undici at the first call: most starts make none, and loading it takes a tenth of a start. */
export async function openAgent(deps: ConnectDeps): Promise<Agent> {
  const { Agent } = await import('undici')
  return new Agent({
    connect: guardedConnector(deps),
    allowH2: false,
    // No limit: one receiver may serve endpoints of many customers, and no customer should wait for another's calls.
    connections: null,
    pipelining: 1,
    keepAliveTimeout: 10_000,
    keepAliveMaxTimeout: 60_000,
    maxHeaderSize: 16_384,
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}

function timedOut(ms: number): string {
  return `no answer within ${ms / 1000} s`
}

function failed(error: string): CallAnswer {
  return { status: null, body: null, error }
}

function toAnswer(status: number, body: string): CallAnswer {
  const isRedirect = status >= 300 && status < 400
  const error = status >= 200 && status < 300 ? null : `the receiver answered ${status}`
  return { status, body, error: isRedirect ? `${error}; redirects are not followed` : error }
}

/** The beginning of the body. An endless or very slow body is cut off, because the status is enough. */
async function readStart(body: Dispatcher.ResponseData['body'], abort: AbortController): Promise<string> {
  const timer = setTimeout(() => abort.abort(), bodyTimeoutMs)
  const kept: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (bytes < keptBytes) kept.push(chunk.subarray(0, keptBytes - bytes))
      bytes += chunk.length
      if (bytes > drainedBytes) break
    }
  } catch {
    // We cut the body off, or the receiver did. The bytes read so far count.
  } finally {
    clearTimeout(timer)
  }
  // PostgreSQL's text type cannot hold NUL.
  return Buffer.concat(kept).toString().replaceAll('\0', '\uFFFD')
}

const words: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was reset',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the host cannot be reached',
  ETIMEDOUT: 'the connection took too long',
  EPIPE: 'the connection was closed',
  UND_ERR_SOCKET: 'the connection was closed before an answer',
  UND_ERR_HEADERS_OVERFLOW: 'the answer has too large a header',
}

/** The fault of an outgoing HTTP call, in words. */
export function describeFault(error: unknown): string {
  if (error instanceof CallFault) return error.message
  const { code = '', name, message, reason } = error as NodeJS.ErrnoException & { reason?: string }
  if (words[code]) return words[code]
  if (name === 'HTTPParserError' || code.startsWith('UND_ERR')) return 'the answer is not HTTP'
  // OpenSSL's own words describe a certificate fault best.
  return `TLS: ${reason ?? message}`.slice(0, 200)
}
