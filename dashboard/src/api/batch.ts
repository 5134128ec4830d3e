// Runs many calls, a few at a time, with pauses when the service asks for one, and with hold and cancel.
import { useSyncExternalStore } from 'react'
import { ApiError } from './client.ts'

export type BatchState = 'ready' | 'running' | 'waiting' | 'held' | 'done' | 'cancelled'

export interface BatchView<Item, Result> {
  state: BatchState
  done: number
  total: number
  /** Grows in place: always the same array. */
  results: readonly Result[]
  failures: readonly { item: Item; error: unknown }[]
  /** The end of a pause that the service asked for, in milliseconds since 1970. Null: no pause. */
  waitUntilMs: number | null
}

const atOnce = 3
const defaultWaitSeconds = 5
const mostTries = 3
const isOver = (state: BatchState) => state === 'done' || state === 'cancelled'

export class Batch<Item, Result> {
  readonly #run: (item: Item) => Promise<Result>
  readonly #waiting: Item[]
  readonly #results: Result[] = []
  readonly #tries = new Map<Item, number>()
  readonly #watchers = new Set<() => void>()
  #active = 0
  #view: BatchView<Item, Result>

  constructor(items: readonly Item[], run: (item: Item) => Promise<Result>) {
    this.#run = run
    this.#waiting = [...items]
    this.#view = {
      state: 'ready',
      done: 0,
      total: items.length,
      results: this.#results,
      failures: [],
      waitUntilMs: null,
    }
  }

  readonly read = (): BatchView<Item, Result> => this.#view

  readonly watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher)
    return () => this.#watchers.delete(watcher)
  }

  /** Starts, or resumes after a hold. */
  start(): void {
    if (isOver(this.#view.state)) return
    this.#change({ state: 'running' })
    while (this.#active < atOnce && this.#waiting.length > 0) void this.#work()
    this.#endWhereOver()
  }

  hold(): void {
    if (!isOver(this.#view.state)) this.#change({ state: 'held', waitUntilMs: null })
  }

  cancel(): void {
    this.#waiting.length = 0
    if (!isOver(this.#view.state)) this.#change({ state: 'cancelled', waitUntilMs: null })
  }

  async #work(): Promise<void> {
    this.#active++
    while (this.#view.state === 'running' && this.#waiting.length > 0) await this.#one(this.#waiting.shift()!)
    this.#active--
    this.#endWhereOver()
  }

  async #one(item: Item): Promise<void> {
    try {
      this.#results.push(await this.#run(item))
      this.#change({ done: this.#view.done + 1 })
    } catch (error) {
      if (error instanceof ApiError && error.status === 429) return this.#wait(item, error)
      const tries = (this.#tries.get(item) ?? 0) + 1
      this.#tries.set(item, tries)
      const mayPass = !(error instanceof ApiError) || error.status >= 500
      if (mayPass && tries < mostTries) return this.#wait(item, error)
      this.#change({ done: this.#view.done + 1, failures: [...this.#view.failures, { item, error }] })
    }
  }

  /** Repeats the call after a pause. No other call starts meanwhile. */
  #wait(item: Item, error: unknown): void {
    if (isOver(this.#view.state)) return
    this.#waiting.unshift(item)
    if (this.#view.state !== 'running') return
    const seconds = (error instanceof ApiError && error.retryAfterSeconds) || defaultWaitSeconds
    this.#change({ state: 'waiting', waitUntilMs: Date.now() + seconds * 1000 })
    setTimeout(() => {
      if (this.#view.state !== 'waiting') return
      this.#change({ waitUntilMs: null })
      this.start()
    }, seconds * 1000)
  }

  #endWhereOver(): void {
    if (this.#active === 0 && this.#waiting.length === 0 && this.#view.state === 'running')
      this.#change({ state: 'done' })
  }

  #change(change: Partial<BatchView<Item, Result>>): void {
    this.#view = { ...this.#view, ...change }
    for (const watcher of this.#watchers) watcher()
  }
}

export function useBatch<Item, Result>(batch: Batch<Item, Result>): BatchView<Item, Result> {
  return useSyncExternalStore(batch.watch, batch.read)
}
