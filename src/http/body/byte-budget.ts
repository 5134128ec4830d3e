// How many bytes of requests and answers are held at once: within a budget for all, and a share of it for each organization.
import type { ServerResponse } from 'node:http'
import { ServiceError } from '../../base/errors.ts'

export class ByteBudget {
  /** What one organization holds at most, while nobody else holds anything. */
  readonly shareBytes: number
  readonly #totalBytes: number
  readonly #held = new Map<string, number>()
  #heldBytes = 0

  constructor(totalBytes: number) {
    this.#totalBytes = totalBytes
    this.shareBytes = Math.floor(totalBytes / 4)
  }

  /**
   * Takes so many bytes more for the organization; null where they are taken. Otherwise they are past its own share, or
   * those that others hold leave too little. Nobody holds more than a third of what is free: however many hold all they
   * can, whoever comes next finds room.
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

/** Who waits this long finds that others have been answered. */
const retrySeconds = 2

/** What one request holds of its organization's share, until its answer is over or it lets go itself. */
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

  /** Takes so many bytes more; the refusal where there is no room for them: by its own fault, or by others'. */
  take(bytes: number): ServiceError | null {
    if (this.#response.destroyed) return null
    const lack = this.#budget.take(this.#organizationId, bytes)
    if (lack === 'share')
      return new ServiceError(
        'rate_limited',
        'Too many bytes of requests and answers of the organization are under way. Wait for some to end.',
        retrySeconds,
      )
    if (lack === 'full') return new ServiceError('unavailable', undefined, retrySeconds)
    this.#bytes += bytes
    return null
  }

  /** Whether the answer is over, or the client has gone. */
  get isOver(): boolean {
    return this.#response.destroyed
  }

  /** Runs once the answer is over, or the client has gone. */
  onOver(drop: () => void): void {
    this.#response.once('close', drop)
  }

  release(): void {
    this.#budget.give(this.#organizationId, this.#bytes)
    this.#bytes = 0
  }
}
