// This node among the others: joined under a number of its own, and under a new one when that is lost.
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Db } from '../postgres/db.ts'
import {
  joinNodes,
  type Node,
  type NodeAddresses,
  type NodeMark,
  type NodeProfile,
  writeNodeAddresses,
  writeNodeMark,
} from '../store/nodes.ts'
import { Loop } from './loop.ts'

/** What this node leaves among the blobs, by which others see that they share them. */
export interface RenewedMark {
  /** As the others know it. */
  readonly published: NodeMark | null
  /** Leaves the next one beside it; null while the blob folder is not there. */
  leave(): Promise<NodeMark | null>
  /** The others know the one that was left last. */
  publish(): void
}

export interface MembershipOptions {
  db: Db
  clock: Clock
  log: Log
  /** Left by now; null where that cannot be. */
  mark: RenewedMark | null
  program: NodeProfile['program']
  /** Asked each time that the others see this node: rejects if it may not be one of them. */
  admit(): Promise<void>
}

/** Sooner than anybody has copied a data folder, taken the number out of the copy and started there. */
const markMs = 5_000

/** Keeps this node known to the others from `start` to `stop`, as long as the database can be reached. */
export class Membership {
  readonly #options: MembershipOptions
  readonly #joining: Loop
  readonly #marking: Loop
  #node: Node | null = null
  #addresses: NodeAddresses = { smtp: null, capture: null }
  /** What the others know. */
  #published = this.#addresses
  readonly #lostListeners: (() => void)[] = []

  constructor(options: MembershipOptions) {
    this.#options = options
    const { log } = options
    this.#joining = new Loop({ name: 'join nodes', run: () => this.#join(), intervalMs: 1_000, log })
    this.#marking = new Loop({ name: 'mark blobs', run: () => this.#mark(), intervalMs: markMs, log })
  }

  async start(): Promise<void> {
    await this.#join()
    this.#joining.start()
    this.#marking.start()
  }

  /** Has the others find this node under its addresses, which it listens on by now. */
  async announce(addresses: NodeAddresses): Promise<void> {
    this.#addresses = addresses
    await this.#publish()
  }

  /** May be called again. */
  async stop(): Promise<void> {
    await Promise.all([this.#joining.stop(), this.#marking.stop()])
    const node = this.#node
    this.#node = null
    await node?.leave()
  }

  /** The number that this node has now; null while it has none. */
  get nodeId(): number | null {
    return this.#node?.id ?? null
  }

  /** `listener` is called when the number is lost: others take this node for dead, and nothing may go on under it. */
  onLost(listener: () => void): void {
    this.#lostListeners.push(listener)
  }

  async #join(): Promise<false> {
    if (this.#node) {
      this.#node.probe()
      await this.#publish()
      return false
    }
    const { db, clock, log, mark, program, admit } = this.#options
    const addresses = this.#addresses
    const node = await joinNodes(db, { ...addresses, mark: mark?.published ?? null, program }, clock.now())
    await admit().catch(async (error) => {
      await node.leave()
      throw error
    })
    this.#node = node
    this.#published = addresses
    node.lost.catch((error) => {
      if (this.#node !== node) return
      this.#node = null
      void node.leave()
      log.warn(
        { number: node.id, reason: error.message },
        'the connection that stands for this node was lost',
      )
      for (const listener of this.#lostListeners) listener()
      this.#joining.wake()
    })
    return false
  }

  /** A new word, so that a copy of the blob folder is not taken for it for longer than `markMs`. */
  async #mark(): Promise<false> {
    const [node, { mark, db }] = [this.#node, this.#options]
    if (!mark || !node) return false
    const left = await mark.leave()
    if (left && (await writeNodeMark(db.writer, node.id, left.word))) mark.publish()
    return false
  }

  /** What a node that was just joined is not known under yet; without one, it is joined with them. */
  async #publish(): Promise<void> {
    const [node, addresses] = [this.#node, this.#addresses]
    if (!node || this.#published === addresses) return
    await writeNodeAddresses(this.#options.db.writer, node.id, addresses)
    if (this.#node === node) this.#published = addresses
  }
}
