// Wakes loops of other nodes by NOTIFY, after commits of this node. A lost wake costs time only, because every loop polls.
import type { Log } from '../base/log.ts'
import { debounceMs, Loop } from './loop.ts'
import type { Membership } from './membership.ts'

/** Work that a commit left. */
export interface Wake {
  /** Received mail waits to be filed. */
  received?: boolean
  /** Events were announced, or inboxes have new messages, or attachments have verdicts. */
  announced?: boolean
  /** Destination queues with new mail. */
  routes?: readonly string[]
  /** Endpoints with new deliveries. */
  webhooks?: readonly string[]
}

/** A wake of another node. `roles` are the roles of that node, which has woken its own loops already. */
export type HeardWake = Required<Wake> & { roles: readonly string[] }

export interface WakesOptions {
  membership: Pick<Membership, 'nodeId' | 'hasOthers' | 'notify' | 'onHeard'>
  roles: readonly string[]
  log: Log
}

/** This many names of 255 bytes fit into a notification, which has up to 7,999 bytes. */
const namesAtOnce = 28
/** More names than this wait for no notification: the polls of the other nodes find their work. */
const maxNames = 1_000

export class Wakes {
  readonly #options: WakesOptions
  readonly #loop: Loop
  /** Null: nothing waits. */
  #flags: Pick<Wake, 'received' | 'announced'> | null = null
  readonly #routes = new Set<string>()
  readonly #webhooks = new Set<string>()

  constructor(options: WakesOptions) {
    this.#options = options
    const { log } = options
    // The first wake is sent at once. Those of the next 20 ms go together.
    this.#loop = new Loop({
      name: 'wake nodes',
      run: () => this.#notify(),
      collectMs: debounceMs,
      log,
    })
  }

  start(): void {
    this.#loop.start()
  }

  async stop(): Promise<void> {
    await this.#loop.stop()
  }

  /** Wakes the other nodes soon. */
  send({ routes = [], webhooks = [], ...flags }: Wake): void {
    if (!this.#options.membership.hasOthers) return
    this.#flags = { ...this.#flags, ...flags }
    addUpTo(maxNames, this.#routes, routes)
    addUpTo(maxNames, this.#webhooks, webhooks)
    this.#loop.wake()
  }

  /** Calls `listener` with each wake of another node. */
  onHeard(listener: (wake: HeardWake) => void): void {
    const { membership } = this.#options
    membership.onHeard((text) => {
      const heard = readNotification(text)
      if (heard && heard.node !== membership.nodeId) listener(heard.wake)
    })
  }

  async #notify(): Promise<boolean> {
    const { membership, roles } = this.#options
    const flags = this.#flags
    if (!flags) return false
    const routes = takeUpTo(namesAtOnce, this.#routes)
    const webhooks = takeUpTo(namesAtOnce - routes.length, this.#webhooks)
    const isMore = this.#routes.size + this.#webhooks.size > 0
    this.#flags = isMore ? {} : null
    await membership.notify(JSON.stringify({ node: membership.nodeId, roles, ...flags, routes, webhooks }))
    return isMore
  }
}

function addUpTo(max: number, names: Set<string>, added: readonly string[]): void {
  for (const name of added) if (names.size < max) names.add(name)
}

function takeUpTo(max: number, names: Set<string>): string[] {
  const taken = [...names].slice(0, max)
  for (const name of taken) names.delete(name)
  return taken
}

/** Null for a text of another form, as a node of another release may send. */
function readNotification(text: string): { node: unknown; wake: HeardWake } | null {
  try {
    const { node, received = false, announced = false, ...lists } = JSON.parse(text)
    const { roles, routes, webhooks } = lists
    if (![roles, routes, webhooks].every(isNames)) return null
    return {
      node,
      wake: { received: received === true, announced: announced === true, roles, routes, webhooks },
    }
  } catch {
    return null
  }
}

function isNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((name) => typeof name === 'string')
}
