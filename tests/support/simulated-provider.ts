// A mail provider with limits, as a model over a given time: 20 connections, messages in a minute and in an hour.
const minuteMs = 60_000
const hourMs = 60 * minuteMs

export const maxProviderConnections = 20

/** Refuses with 421 past `perMinute` messages in a minute, and with 4.7.28 past `perHour` in an hour. */
export class SimulatedProvider {
  readonly #takenMs: number[] = []
  readonly #perMinute: number
  readonly #perHour: number

  constructor(perMinute = 100, perHour = 1_000) {
    this.#perMinute = perMinute
    this.#perHour = perHour
  }

  /** Returns the refusal of a message, or null if it is taken. */
  take(nowMs: number): string | null {
    while (this.#takenMs.length > 0 && this.#takenMs[0]! <= nowMs - hourMs) this.#takenMs.shift()
    if (this.#takenMs.length >= this.#perHour) return '450 4.7.28 unusual rate of mail'
    const inMinute = this.#takenMs.length - this.#takenMs.findLastIndex((at) => at <= nowMs - minuteMs) - 1
    if (inMinute >= this.#perMinute) return '421 4.7.0 too many messages'
    this.#takenMs.push(nowMs)
    return null
  }
}
