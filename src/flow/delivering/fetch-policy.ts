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

/** Why there is no policy. `type`: as reports name it (RFC 8460 4.3.2.2). `fault`: in words. */
export interface PolicyFault {
  type: 'sts-policy-fetch-error' | 'sts-policy-invalid' | 'sts-webpki-invalid'
  fault: string
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

  /** Fetches the policy of `domain`. Returns the policy, or the fault. Never rejects. */
  async fetch(domain: string, signal: AbortSignal): Promise<{ policy: StsPolicy } | PolicyFault> {
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
      return fault
    } catch (error) {
      // Network failures are exceptions here. The caller gets them as values.
      if (late.aborted) return unfetched(`no policy within ${timeoutMs / 1000} s`)
      const fault = signal.aborted ? 'interrupted' : describeFault(error)
      return fault.startsWith('TLS: ') ? { type: 'sts-webpki-invalid', fault } : unfetched(fault)
    }
  }

  async close(): Promise<void> {
    const agent = await this.#agent
    await agent?.destroy()
  }
}

function unfetched(fault: string): PolicyFault {
  return { type: 'sts-policy-fetch-error', fault }
}

function invalid(fault: string): PolicyFault {
  return { type: 'sts-policy-invalid', fault }
}

function refusalOf({ statusCode, headers }: Dispatcher.ResponseData): PolicyFault | null {
  // RFC 8461 3.3: redirects must not be followed.
  if (statusCode !== 200) return unfetched(`the policy host answered ${statusCode}`)
  // RFC 8461 3.2: text/plain, so that a page that a stranger may store at the host is no policy.
  const type = String(headers['content-type'] ?? '')
  return /^text\/plain[ \t]*(?:;|$)/i.test(type) ? null : invalid('the policy is not text/plain')
}

async function readPolicy(
  body: Dispatcher.ResponseData['body'],
): Promise<{ policy: StsPolicy } | PolicyFault> {
  const kept: Buffer[] = []
  let bytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    // RFC 8461 3.3: a maximum of 64 KB is suggested. Leaving the loop closes the connection.
    if (bytes > maxPolicyBytes) break
    kept.push(chunk)
  }
  if (bytes > maxPolicyBytes) return invalid(`longer than ${maxPolicyBytes} bytes`)
  const parsed = parseStsPolicy(Buffer.concat(kept).toString())
  return 'policy' in parsed ? parsed : invalid(parsed.fault)
}
