// The listeners of a service with workers: the supervisor accepts, and gives each connection to one worker.
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { Log } from '../../base/log.ts'
import type { ListenCalls, ListenQuery } from './calls.ts'

/** Connections of one listener that wait for a worker. Further ones are closed. One process holds as many HTTP connections. */
const connectionsWaiting = 10_000

/** Gives a worker a connection of the listener with this key. */
type Send = (key: string, socket: Socket) => void

/** All listeners, by the address that the workers asked for. */
export class SharedListeners {
  readonly #log: Log
  readonly #maxWaiting: number
  readonly #listeners = new Map<string, SharedListener>()
  #isStopping = false

  constructor(log: Log, { maxWaiting = connectionsWaiting } = {}) {
    this.#log = log
    this.#maxWaiting = maxWaiting
  }

  /**
   * Returns the calls of one worker. `release` gives the connections that it had not yet taken to other workers. `noteSent`
   * notes the connections on their way to it, and returns a function. That gives those still on their way to other workers.
   */
  forWorker(send: Send): { calls: ListenCalls; release(): void; noteSent(): () => void } {
    const calls: ListenCalls = {
      listen: async (query) => {
        const key = [query.address, query.port, query.index].join(' ')
        const listener = this.#listeners.get(key) ?? this.#open(key, query)
        try {
          return await listener.join(send)
        } catch (error) {
          this.#listeners.delete(key)
          return (error as NodeJS.ErrnoException).errno ?? 0
        }
      },
      unlisten: (key) => this.#listeners.get(key)?.leave(send),
      took: (key) => this.#listeners.get(key)?.took(send),
      refused: (key) => this.#listeners.get(key)?.refused(send),
    }
    const release = () => {
      for (const listener of this.#listeners.values()) {
        listener.leave(send)
        listener.refused(send)
      }
    }
    const noteSent = () => {
      const onTheirWay = [...this.#listeners.values()].map((listener) => listener.noteSent(send))
      return () => {
        for (const refuse of onTheirWay)
          if (refuse()) this.#log.warn({}, 'a connection did not reach its worker; another worker gets it')
      }
    }
    return { calls, release, noteSent }
  }

  /** From now on, each listener closes with its last worker. Before, connections wait for a worker that replaces another. */
  stop(): void {
    this.#isStopping = true
    for (const listener of this.#listeners.values()) listener.closeIfUnused()
  }

  #open(key: string, query: ListenQuery): SharedListener {
    const listener = new SharedListener(key, query, {
      log: this.#log,
      maxWaiting: this.#maxWaiting,
      isStopping: () => this.#isStopping,
      closed: () => this.#listeners.delete(key),
    })
    this.#listeners.set(key, listener)
    return listener
  }
}

/** One listener. Each worker has up to one connection that it has not yet taken, so a busy worker gets fewer. */
class SharedListener {
  readonly #key: string
  readonly #server: Server
  readonly #listening: Promise<unknown>
  readonly #maxWaiting: number
  readonly #isStopping: () => boolean
  readonly #closed: () => void
  readonly #workers = new Set<Send>()
  /** Workers without a connection on its way, the one that has waited longest first. */
  readonly #free = new Set<Send>()
  readonly #onTheirWay = new Map<Send, Socket>()
  readonly #waiting: Socket[] = []

  constructor(
    key: string,
    { address, port, backlog }: ListenQuery,
    {
      log,
      maxWaiting,
      isStopping,
      closed,
    }: { log: Log; maxWaiting: number; isStopping(): boolean; closed(): void },
  ) {
    this.#key = key
    this.#maxWaiting = maxWaiting
    this.#isStopping = isStopping
    this.#closed = closed
    this.#server = createServer({ pauseOnConnect: true }, (socket) => this.#arrive(socket))
    this.#server.listen({ host: address, port, backlog })
    this.#listening = once(this.#server, 'listening').then(() =>
      this.#server.on('error', (error) => log.error({ err: error }, 'a connection could not be accepted')),
    )
  }

  async join(worker: Send): Promise<{ key: string; bound: AddressInfo }> {
    await this.#listening
    this.#workers.add(worker)
    this.#free.add(worker)
    this.#give()
    return { key: this.#key, bound: this.#server.address() as AddressInfo }
  }

  /** The worker takes no more. */
  leave(worker: Send): void {
    this.#workers.delete(worker)
    this.#free.delete(worker)
    this.closeIfUnused()
  }

  closeIfUnused(): void {
    if (this.#workers.size > 0 || !this.#isStopping()) return
    this.#server.close()
    this.#closed()
    for (const socket of this.#waiting.splice(0)) socket.destroy()
  }

  /** The worker has taken the connection on its way. */
  took(worker: Send): void {
    // This closes only the supervisor's copy.
    this.#onTheirWay.get(worker)?.destroy()
    this.#next(worker)
  }

  /** Another worker must take the connection on its way to this one, if there is one. */
  refused(worker: Send): void {
    const socket = this.#onTheirWay.get(worker)
    if (socket) this.#waiting.unshift(socket)
    this.#next(worker)
  }

  /**
   * Notes the connection on its way to this worker. The returned function gives it to another worker if the worker has not
   * answered by then, and returns whether it did.
   */
  noteSent(worker: Send): () => boolean {
    const socket = this.#onTheirWay.get(worker)
    return () => {
      if (!socket || this.#onTheirWay.get(worker) !== socket) return false
      this.refused(worker)
      return true
    }
  }

  #next(worker: Send): void {
    this.#onTheirWay.delete(worker)
    if (this.#workers.has(worker)) this.#free.add(worker)
    this.#give()
    this.closeIfUnused()
  }

  #arrive(socket: Socket): void {
    if (this.#waiting.length >= this.#maxWaiting) {
      socket.destroy()
      return
    }
    this.#waiting.push(socket)
    this.#give()
  }

  #give(): void {
    for (const worker of this.#free) {
      const socket = this.#waiting.shift()
      if (!socket) return
      this.#free.delete(worker)
      this.#onTheirWay.set(worker, socket)
      worker(this.#key, socket)
    }
  }
}
