// Joins this node to the other nodes under a number of its own, and under a new number after that one is lost.
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Db } from '../postgres/db.ts'
import {
  joinNodes,
  type Node,
  type NodeAddresses,
  type NodeMark,
  type NodeProfile,
  type NodeReport,
  writeNodeAddresses,
} from '../store/nodes.ts'
import { Loop } from './loop.ts'
import { SilentNodes } from './silent-nodes.ts'

/** The mark that this node leaves among the blobs. It shows the other nodes that they share the blob folder. */
export interface RenewedMark {
  /** The mark that the other nodes know. */
  readonly published: NodeMark | null
  /** Writes a new mark into the blob folder, next to the published one. Returns it; null while the folder is missing. */
  leave(): Promise<NodeMark | null>
  /** Records that the other nodes know the newest mark. */
  publish(): void
}

export interface MembershipOptions {
  db: Db
  clock: Clock
  log: Log
  /** The mark, already written among the blobs; null if that is impossible. */
  mark: RenewedMark | null
  program: NodeProfile['program']
  /** Called each time this node joins. Rejects if this node may not be a member. */
  admit(): Promise<void>
}

/**
 * How often this node reports itself, with a new mark each time. Shorter than the time it takes to copy a data folder,
 * delete the copy's `folder-id` and start a node on the copy.
 */
const markMs = 4_000
/** The same while no mark can be left, for example on a full disk. */
const reportMs = 4_500
/**
 * For this long after a report this node knows that no other has taken its work. It is shorter than the time after which
 * `SilentNodes` finds it silent, by more than it takes to send the last bytes of a message.
 */
const certainMs = 8_500

/** Keeps this node known to the other nodes from `start` to `stop`, as long as the database can be reached. */
export class Membership {
  readonly #options: MembershipOptions
  readonly #joining: Loop
  readonly #marking: Loop
  #node: Node | null = null
  #addresses: NodeAddresses = { smtp: null, capture: null }
  /** The addresses that the other nodes know. */
  #published = this.#addresses
  /** The word of the newest mark; null once the other nodes know it. */
  #word: string | null = null
  readonly #silent = new SilentNodes()
  /** Reads the reports of the others at the moment at which one of them may be silent. */
  #watch: NodeJS.Timeout | undefined
  /** The number that was lost, until the node has joined anew. */
  #former: number | null = null
  readonly #lostListeners: (() => void)[] = []
  #heard: (text: string) => void = () => {}

  constructor(options: MembershipOptions) {
    this.#options = options
    const { log } = options
    this.#joining = new Loop({ name: 'join nodes', run: () => this.#join(), intervalMs: reportMs, log })
    this.#marking = new Loop({ name: 'mark blobs', run: () => this.#mark(), intervalMs: markMs, log })
  }

  async start(): Promise<void> {
    await this.#join()
    this.#joining.start()
    this.#marking.start()
  }

  /** Publishes the addresses on which this node now listens, so that other nodes find it. */
  async announce(addresses: NodeAddresses): Promise<void> {
    this.#addresses = addresses
    await this.#publish()
  }

  /** Ends this node's membership. Safe to call twice. */
  async stop(): Promise<void> {
    await Promise.all([this.#joining.stop(), this.#marking.stop()])
    const node = this.#node
    this.#node = null
    clearTimeout(this.#watch)
    await node?.leave()
  }

  /** This node's current number; null while it has none. */
  get nodeId(): number | null {
    return this.#node?.id ?? null
  }

  /** Whether no other node can have taken over this node's work. By monotonic time, so that a stopped process knows it. */
  get isCertain(): boolean {
    return this.#node !== null && performance.now() < this.#node.reportedMs + certainMs
  }

  /** Calls `listener` when the number is lost. Other nodes then consider this node dead, so all work under it must end. */
  onLost(listener: () => void): void {
    this.#lostListeners.push(listener)
  }

  /** Whether a text would reach another node. */
  get hasOthers(): boolean {
    return this.#node?.hasOthers ?? false
  }

  /** Sends a text to the other nodes. It is lost while this node has no number. */
  async notify(text: string): Promise<void> {
    await this.#node?.notify(text)
  }

  /** Calls `heard` with each text that a node sends, this node included. */
  onHeard(heard: (text: string) => void): void {
    this.#heard = heard
  }

  async #join(): Promise<false> {
    if (this.#node) {
      // A report that takes long delays nothing else.
      void this.#report(this.#node, this.#word)
      await this.#publish()
      return false
    }
    const { db, clock, log, mark, program, admit } = this.#options
    const addresses = this.#addresses
    const profile = { ...addresses, mark: mark?.published ?? null, program }
    const joining = { heard: (text: string) => this.#heard(text), former: this.#former }
    const node = await joinNodes(db, profile, clock.now(), joining)
    await admit().catch(async (error) => {
      await node.leave()
      throw error
    })
    this.#node = node
    this.#former = null
    this.#published = addresses
    node.lost.catch((error) => {
      if (this.#node !== node) return
      this.#node = null
      this.#former = node.id
      void node.leave()
      log.warn({ number: node.id, reason: error.message }, 'connection that registers this node was lost')
      for (const listener of this.#lostListeners) listener()
      this.#joining.wake()
    })
    return false
  }

  async #report(node: Node, word: string | null): Promise<void> {
    const others = await node.report(word)
    if (!others || this.#node !== node) return
    if (word !== null) {
      this.#options.mark?.publish()
      this.#word = null
    }
    for (const silent of this.#silent.observe(others, performance.now())) await this.#end(node, silent)
    clearTimeout(this.#watch)
    const soonestMs = this.#silent.soonestMs(performance.now())
    if (soonestMs < reportMs) this.#watch = setTimeout(() => this.#joining.wake(), soonestMs).unref()
  }

  /** Makes a node that hangs count as dead, so that others take over its work. */
  async #end(node: Node, silent: NodeReport): Promise<void> {
    const { log } = this.#options
    try {
      if (await node.endSilent(silent)) log.warn({ number: silent.id }, 'silent node counts as dead')
    } catch (error) {
      log.error(
        { err: error, number: silent.id },
        'silent node keeps its work: its connection could not be ended',
      )
    }
  }

  /** Replaces the word in the mark, so that a copy of the blob folder passes for the original for at most `markMs`. */
  async #mark(): Promise<false> {
    const { mark } = this.#options
    if (!mark || !this.#node) return false
    // While the other nodes do not know the newest mark, the next report tries again.
    this.#word ??= (await mark.leave())?.word ?? null
    if (this.#word !== null) this.#joining.wake()
    return false
  }

  /**
   * Publishes this node's addresses if they have changed. While this node has not joined, leaves that to the next join.
   */
  async #publish(): Promise<void> {
    const [node, addresses] = [this.#node, this.#addresses]
    if (!node || this.#published === addresses) return
    await writeNodeAddresses(this.#options.db.writer, node.id, addresses)
    if (this.#node === node) this.#published = addresses
  }
}
