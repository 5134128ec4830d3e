// Asks DNS on behalf of many askers. Each has a share of the questions under way.
import { divided } from '../base/share.ts'
import { ShareLimit } from '../base/share-limit.ts'
import type { Asking, DnsAnswer, DnsRecords, DnsType, Resolver } from './resolver.ts'

export interface SharedResolverOptions {
  resolver: Pick<Resolver, 'resolve'>
  /** The processes that divide the next two limits. */
  workers?: number
  /** Questions under way at the same time, each with its own socket. */
  maxAsking?: number
  /** Questions that wait for a slot. */
  maxWaiting?: number
  /** The longest wait for a slot. */
  maxWaitMs?: number
}

/** Limits questions that strangers choose. A single asker may use a third of the slots. The share shrinks as others come. */
export class SharedResolver {
  readonly #resolver: Pick<Resolver, 'resolve'>
  readonly #limit: ShareLimit
  readonly #maxWaitMs: number

  constructor({
    resolver,
    workers = 1,
    maxAsking = 1_024,
    maxWaiting = 4_096,
    maxWaitMs = 30_000,
  }: SharedResolverOptions) {
    this.#resolver = resolver
    this.#limit = new ShareLimit({
      max: divided(maxAsking, workers),
      maxWaiting: divided(maxWaiting, workers),
    })
    this.#maxWaitMs = maxWaitMs
  }

  /** A resolver for one purpose. An asker's questions for one purpose take no slots from its questions for another. */
  for(purpose: string): Pick<Resolver, 'resolve'> {
    return {
      resolve: (type, name, { asker = '', ...asking } = {}) =>
        this.resolve(type, name, { ...asking, asker: `${purpose} ${asker}` }),
    }
  }

  /** Like `Resolver.resolve`, after waiting for a slot. The asker '' is the node itself. Never rejects. */
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
