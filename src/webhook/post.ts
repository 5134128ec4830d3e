// Makes one webhook call: no redirects, bounded in time and in what is read, to nothing but addresses that may be reached.
import { Agent, type Dispatcher } from 'undici'
import type { AddressGuard } from './address-guard.ts'
import { CallFault, type ConnectDeps, guardedConnector } from './connect.ts'

export interface CallAnswer {
  /** The receiver's status; null where there was none. */
  status: number | null
  /** The first 2 KiB of its body as text; null where there was none. */
  body: string | null
  /** What went wrong, in words for the customer; null for a 2xx in time. */
  error: string | null
}

export interface PosterOptions extends ConnectDeps {
  guard: AddressGuard
  /** From the call to the receiver's status. */
  timeoutMs?: number
}

const keptBytes = 2_048
/** Reading on to the end keeps the connection; past this it costs more than a new one. */
const drainedBytes = 64 * 1024
const bodyTimeoutMs = 2_000

/** Calls endpoints over connections that are kept for the next call. */
export class Poster {
  readonly #guard: AddressGuard
  readonly #agent: Agent
  readonly #timeoutMs: number

  constructor({ timeoutMs = 15_000, ...deps }: PosterOptions) {
    this.#guard = deps.guard
    this.#timeoutMs = timeoutMs
    this.#agent = new Agent({
      connect: guardedConnector(deps),
      allowH2: false,
      // One receiver may stand behind endpoints of many customers: none of them waits for another's calls.
      connections: null,
      pipelining: 1,
      keepAliveTimeout: 10_000,
      keepAliveMaxTimeout: 60_000,
      maxHeaderSize: 16_384,
      headersTimeout: 0,
      bodyTimeout: 0,
    })
  }

  /** Posts the body; never rejects. `signal` cuts it short. */
  async post(
    url: string,
    headers: Record<string, string>,
    body: string,
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
      const answer = await this.#agent.request({
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
      // The world's answer comes as an exception here and leaves as a value.
      return failed(describe(abort.signal.aborted ? abort.signal.reason : error))
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', cut)
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy()
  }
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

/** The beginning of the body. An endless or a dripping one is cut: its status has said enough. */
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
    // Cut by us or broken off by the receiver: what came before counts.
  } finally {
    clearTimeout(timer)
  }
  // PostgreSQL's text holds no NUL.
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

function describe(error: unknown): string {
  if (error instanceof CallFault) return error.message
  const { code = '', name, message, reason } = error as NodeJS.ErrnoException & { reason?: string }
  if (words[code]) return words[code]
  if (name === 'HTTPParserError' || code.startsWith('UND_ERR')) return 'the answer is not HTTP'
  // OpenSSL's own words say best what is wrong with a certificate.
  return `TLS: ${reason ?? message}`.slice(0, 200)
}
