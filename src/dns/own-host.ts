// Knows which mail servers are this deployment itself. Connecting to them would be a mail loop.
import { networkInterfaces } from 'node:os'
import type { Resolver } from './resolver.ts'

export interface OwnHostOptions {
  resolver: Pick<Resolver, 'resolve'>
  /** The mail host: its name and addresses are those that other hosts connect to. Null if there is none, in development. */
  mailHost: string | null
  /** Addresses at which living nodes listen for mail, `ip:port`. */
  listListening(): Promise<string[]>
  /** The port of mail servers that deliveries connect to. Nodes that listen on another port are not reached. */
  port: number
}

const rememberMs = 60_000

export class OwnHost {
  readonly #options: OwnHostOptions
  #known: { addresses: Promise<ReadonlySet<string>>; untilMs: number } | null = null

  constructor(options: OwnHostOptions) {
    this.#options = options
  }

  /** Whether the mail server of this name, or one of these addresses, is ours. Rejects if the nodes cannot be asked. */
  async is(name: string, addresses: readonly string[]): Promise<boolean> {
    if (name === this.#options.mailHost) return true
    const own = await this.#addresses()
    return addresses.some((address) => own.has(address))
  }

  async #addresses(): Promise<ReadonlySet<string>> {
    const nowMs = performance.now()
    if (!this.#known || this.#known.untilMs < nowMs)
      this.#known = { addresses: this.#find(), untilMs: nowMs + rememberMs }
    try {
      return await this.#known.addresses
    } catch (error) {
      this.#known = null
      throw error
    }
  }

  async #find(): Promise<ReadonlySet<string>> {
    const { resolver, mailHost, listListening, port } = this.#options
    const types = mailHost ? (['A', 'AAAA'] as const) : []
    // Ignores answers that DNS cannot give now. Stopping all mail for them would be worse than a loop, which the hop
    // limit ends.
    const answers = await Promise.all(types.map((type) => resolver.resolve(type, mailHost!)))
    const published = answers.flatMap((answer) => (answer.status === 'ok' ? answer.records : []))
    const listening = (await listListening()).flatMap((text) => {
      const colon = text.lastIndexOf(':')
      const ip = text.slice(0, colon).replace(/^\[|\]$/g, '')
      return Number(text.slice(colon + 1)) === port ? reachedAt(ip) : []
    })
    return new Set([...published.map(({ address }) => address), ...listening])
  }
}

/** A node that listens at every address of this machine is reached at each of them. */
function reachedAt(ip: string): string[] {
  if (ip !== '0.0.0.0' && ip !== '::') return [ip]
  return Object.values(networkInterfaces()).flatMap((addresses) =>
    (addresses ?? []).map(({ address }) => address),
  )
}
