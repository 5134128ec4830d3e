// HTTP load: what is asked of the generator, and the single calls that prepare a benchmark.
import { fileURLToPath } from 'node:url'
import { runChild } from '../children.ts'

export interface HttpLoad {
  url: string
  method: 'GET' | 'POST'
  /** Taken in turn. */
  paths: readonly string[]
  headers: Record<string, string>
  /** JSON; each POST carries an idempotency key of its own, or one of `keys` in turn. */
  body?: string
  keys?: { prefix: string; count: number }
  connections: number
  /** Ends after this many requests, or after this time. */
  requests?: number
  durationMs?: number
  /** Requests begin at this rate, evenly spread; without it each connection begins one as soon as the last is answered. */
  perSecond?: number
  expectStatus: string
}

export interface HttpResult {
  /** First request and last answer, milliseconds since the epoch. */
  startedAtMs: number
  endedAtMs: number
  answered: number
  refused: number
  firstRefusal: string
  latencyMs: { p50: number; p95: number; p99: number }
}

const client = fileURLToPath(new URL('http-client.ts', import.meta.url))

/** Runs the load in a program of its own; throws when any answer has another status than the expected one. */
export async function sendByHttp(load: HttpLoad): Promise<HttpResult> {
  const output = await runChild(process.execPath, [client], { input: JSON.stringify(load) })
  const result = JSON.parse(output) as HttpResult
  if (result.refused > 0) {
    throw new Error(`${result.refused} of ${result.answered} requests were refused: ${result.firstRefusal}`)
  }
  return result
}

/** Answers per second of a result. */
export function perSecond(result: HttpResult): number {
  return (result.answered / (result.endedAtMs - result.startedAtMs)) * 1000
}

/**
 * The JSON of a send to one recipient with `textBytes` of text: words in no order, so that it compresses like mail. A send
 * of no inbox says who it is from.
 */
export function sendBody(recipient: string, textBytes: number, from?: string): string {
  let text = ''
  let state = 1
  while (text.length < textBytes) {
    // A linear congruential generator: the same text in every run.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    text += state.toString(36).slice(0, 2 + (state % 6)) + (state % 11 === 0 ? '\n' : ' ')
  }
  const subject = 'A message of the benchmark'
  const sender = from === undefined ? {} : { from: { email: from } }
  return JSON.stringify({ ...sender, to: [{ email: recipient }], subject, text: text.slice(0, textBytes) })
}
