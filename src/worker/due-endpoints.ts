// Which customers' endpoints this node acquires, and the worker that each endpoint gets.
import { divided } from '../base/share.ts'
import { findDueWebhooks, type WebhookLease, webhookLeases } from '../store/events/webhooks.ts'
import { CallBudget, type EndpointVerbs, EndpointWorker } from './endpoint-worker.ts'
import type { LeaseSource, LeaseTerms, Search, Workers } from './lease-holder.ts'

/** Makes the operations on one endpoint, bound to one lease. */
type VerbsFor<Call> = (lease: WebhookLease, mayFinish: () => boolean) => EndpointVerbs<Call>

const acquireAtOnce = 100
const maxEndpoints = 2_000
const budget = { calls: 2_000, slowCalls: 1_500 }

export class DueEndpoints<Call extends { id: string }>
  implements LeaseSource<WebhookLease, EndpointWorker<Call>>
{
  readonly leases = webhookLeases
  readonly #verbsFor: VerbsFor<Call>
  readonly #budget: CallBudget
  readonly #maxEndpoints: number
  #isMore = false

  /** `workers`: the processes that divide the limits of a service. */
  constructor(verbsFor: VerbsFor<Call>, workers: number) {
    this.#verbsFor = verbsFor
    this.#budget = new CallBudget({
      calls: divided(budget.calls, workers),
      slowCalls: divided(budget.slowCalls, workers),
    })
    this.#maxEndpoints = divided(maxEndpoints, workers)
  }

  /** Whether more endpoints were due than could be acquired, and there is room again. */
  hasMore(held: Workers<EndpointWorker<Call>>): boolean {
    return this.#isMore && held.size < this.#maxEndpoints
  }

  async find({ db, asker, at, hinted, isPoll, held }: Search<EndpointWorker<Call>>): Promise<string[]> {
    const room = Math.max(0, Math.min(this.#maxEndpoints - held.size, acquireAtOnce))
    const known = [...hinted]
    hinted.clear()
    // A search of all endpoints also finds the hinted ones.
    const isWhole = isPoll || this.hasMore(held)
    const due = isWhole ? await findDueWebhooks(db, asker, at, room) : known
    this.#isMore = due.length >= room
    return due.slice(0, room)
  }

  createWorker(lease: WebhookLease, { clock, log, mayFinish, idleMs }: LeaseTerms): EndpointWorker<Call> {
    const onError = (error: unknown) => log.error({ err: error, webhook: lease.key }, 'webhook call failed')
    return new EndpointWorker({
      clock,
      budget: this.#budget,
      idleMs,
      onError,
      verbs: this.#verbsFor(lease, mayFinish),
    })
  }
}
