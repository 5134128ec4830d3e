// Fetches the MTA-STS policy of a domain over HTTPS (RFC 8461 3.3), with bounds on time and bytes.
import type { Agent, Dispatcher } from 'undici'
import { policyHostOf } from '../../dns/mta-sts.ts'
import { maxPolicyBytes, parseStsPolicy, type StsPolicy } from '../../mailauth/mta-sts.ts'
import type { ConnectDeps } from '../../webhook/connect.ts'
import { describeFault, openAgent } from '../../webhook/post.ts'

export interface PolicyFetcherOptions extends ConnectDeps {
  /** The port of policy hosts. */
  port?: number
  /** For a whole fetch, with connecting. */
  timeoutMs?: number
}

/** RFC 8461 3.3 suggests a minute. Mail waits for the first fetch, so a silent host delays it by less. */
const defaultTimeoutMs = 15_000
const path = '/.well-known/mta-sts.txt'

export class PolicyFetcher {
  readonly #options: Required<PolicyFetcherOptions>
  #agent: Promise<Agent> | null = null

  constructor(options: PolicyFetcherOptions) {
    this.#options = { port: 443, timeoutMs: defaultTimeoutMs, ...options }
  }

  /** Fetches the policy of `domain`. Returns the policy, or the fault in words. Never rejects. */
  async fetch(domain: string, signal: AbortSignal): Promise<{ policy: StsPolicy } | { fault: string }> {
    const { port, timeoutMs } = this.#options
    const late = AbortSignal.timeout(timeoutMs)
    try {
      this.#agent ??= openAgent(this.#options)
      const agent = await this.#agent
      const answer = await agent.request({
        origin: `https://${policyHostOf(domain)}:${port}`,
        path,
        method: 'GET',
        reset: true,
        signal: AbortSignal.any([signal, late]),
      })
      const fault = refusalOf(answer)
      if (fault === null) return await readPolicy(answer.body)
      // Closes the connection. undici reports that as an error of the body, which would end the process if unheard.
      answer.body.on('error', () => {}).destroy()
      return { fault }
    } catch (error) {
      // Network failures are exceptions here. The caller gets them as values.
      if (late.aborted) return { fault: `no policy within ${timeoutMs / 1000} s` }
      return { fault: signal.aborted ? 'interrupted' : describeFault(error) }
    }
  }

  async close(): Promise<void> {
    const agent = await this.#agent
    await agent?.destroy()
  }
}

function refusalOf({ statusCode, headers }: Dispatcher.ResponseData): string | null {
  // RFC 8461 3.3: redirects must not be followed.
  if (statusCode !== 200) return `the policy host answered ${statusCode}`
  // RFC 8461 3.2: text/plain, so that a page that a stranger may store at the host is no policy.
  const type = String(headers['content-type'] ?? '')
  return /^text\/plain[ \t]*(?:;|$)/i.test(type) ? null : 'the policy is not text/plain'
}

async function readPolicy(
  body: Dispatcher.ResponseData['body'],
): Promise<{ policy: StsPolicy } | { fault: string }> {
  const kept: Buffer[] = []
  let bytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    // RFC 8461 3.3: a maximum of 64 KB is suggested. Leaving the loop closes the connection.
    if (bytes > maxPolicyBytes) break
    kept.push(chunk)
  }
  if (bytes > maxPolicyBytes) return { fault: `longer than ${maxPolicyBytes} bytes` }
  return parseStsPolicy(Buffer.concat(kept).toString())
}
