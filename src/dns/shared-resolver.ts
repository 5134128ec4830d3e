// Asks DNS on behalf of many: each asker has a share of the questions under way.
import { ShareLimit } from '../base/share-limit.ts'
import type { Asking, DnsAnswer, DnsRecords, DnsType, Resolver } from './resolver.ts'

export interface SharedResolverOptions {
  resolver: Pick<Resolver, 'resolve'>
  /** Questions under way at the same time, each over a socket of its own. */
  maxAsking?: number
  /** Questions that wait for their turn. */
  maxWaiting?: number
  /** The longest wait for a turn. */
  maxWaitMs?: number
}

/** Of the questions that strangers choose, one asker has a third alone; the share shrinks as further askers come. */
export class SharedResolver {
  readonly #resolver: Pick<Resolver, 'resolve'>
  readonly #limit: ShareLimit
  readonly #maxWaitMs: number

  constructor({
    resolver,
    maxAsking = 1_024,
    maxWaiting = 4_096,
    maxWaitMs = 30_000,
  }: SharedResolverOptions) {
    this.#resolver = resolver
    this.#limit = new ShareLimit({ max: maxAsking, maxWaiting })
    this.#maxWaitMs = maxWaitMs
  }

  /** The same for one purpose: an asker's questions for it take no place from those for another purpose. */
  for(purpose: string): Pick<Resolver, 'resolve'> {
    return {
      resolve: (type, name, { asker = '', ...asking } = {}) =>
        this.resolve(type, name, { ...asking, asker: `${purpose} ${asker}` }),
    }
  }

  /** As `Resolver.resolve`, once the asker has a place. The asker '' is the node itself. Never rejects. */
  async resolve<Type extends DnsType>(
    type: Type,
    name: string,
    asking: Asking = {},
  ): Promise<DnsAnswer<DnsRecords[Type]>> {
    const { asker = '', deadlineMs = this.#maxWaitMs, signal } = asking
    if (!(await this.#limit.enter(asker, deadlineMs, signal)))
      return { status: 'temporary', reason: 'too many DNS questions are under way' }
    try {
      return await this.#resolver.resolve(type, name, asking)
    } finally {
      this.#limit.leave(asker)
    }
  }
}
