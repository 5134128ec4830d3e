// Bounds the bytes of requests and answers in memory: one budget for all, and a share of it for each organization.
import type { ServerResponse } from 'node:http'
import { ServiceError } from '../../base/errors.ts'

export class ByteBudget {
  /** The most that one organization may hold while no other holds anything. */
  readonly shareBytes: number
  readonly #totalBytes: number
  readonly #held = new Map<string, number>()
  #heldBytes = 0

  constructor(totalBytes: number) {
    this.#totalBytes = totalBytes
    this.shareBytes = Math.floor(totalBytes / 4)
  }

  /**
   * Takes bytes for the organization and returns null, or refuses: `share` if its own share is used up, `full` if others
   * leave too little. An organization may hold up to a third of the free bytes, so the next organization always finds
   * room.
   */
  take(organizationId: string, bytes: number): 'share' | 'full' | null {
    const held = (this.#held.get(organizationId) ?? 0) + bytes
    if (held > this.shareBytes) return 'share'
    if (held > (this.#totalBytes - this.#heldBytes) / 3) return 'full'
    this.#held.set(organizationId, held)
    this.#heldBytes += bytes
    return null
  }

  give(organizationId: string, bytes: number): void {
    const left = (this.#held.get(organizationId) ?? 0) - bytes
    if (left > 0) this.#held.set(organizationId, left)
    else this.#held.delete(organizationId)
    this.#heldBytes -= bytes
  }
}

/** Long enough for other requests to be answered and to free their bytes. */
const retrySeconds = 2

/**
 * The bytes that one request holds of its organization's share, until its answer has been sent or `release` is called.
 */
export class Holding {
  readonly #budget: ByteBudget
  readonly #organizationId: string
  readonly #response: ServerResponse
  #bytes = 0

  constructor(budget: ByteBudget, organizationId: string, response: ServerResponse) {
    this.#budget = budget
    this.#organizationId = organizationId
    this.#response = response.once('close', () => this.release())
  }

  /**
   * Takes bytes and returns null, or returns `rate_limited` if the organization holds too much, `unavailable` if others
   * do.
   */
  take(bytes: number): ServiceError | null {
    if (this.#response.destroyed) return null
    const lack = this.#budget.take(this.#organizationId, bytes)
    if (lack === 'share')
      return new ServiceError(
        'rate_limited',
        'The organization has too many bytes of requests and responses in progress. Wait until some are done.',
        retrySeconds,
      )
    if (lack === 'full') return new ServiceError('unavailable', undefined, retrySeconds)
    this.#bytes += bytes
    return null
  }

  /** Whether the answer has been sent, or the client has left. */
  get isOver(): boolean {
    return this.#response.destroyed
  }

  /** Runs `drop` once the answer has been sent, or the client has left. */
  onOver(drop: () => void): void {
    this.#response.once('close', drop)
  }

  release(): void {
    this.#budget.give(this.#organizationId, this.#bytes)
    this.#bytes = 0
  }
}
