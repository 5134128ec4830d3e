// Lines that work side by side take up their work one after the other, and finish it in the same order.

export interface Ticket {
  /** Resolves when who came before has taken up its work. */
  mayTake: Promise<void>
  taken(): void
  /** Resolves when who came before has ended. */
  mayFinish: Promise<void>
  ended(): void
}

/** Whoever comes must say, in every case, that it has taken up its work and that it has ended. */
export class Tickets {
  #taken = Promise.resolve()
  #ended = Promise.resolve()

  come(): Ticket {
    const [mayTake, mayFinish] = [this.#taken, this.#ended]
    const taken = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<void>()
    // Who has ended lets the next go on only in its own turn.
    this.#taken = mayTake.then(() => taken.promise)
    this.#ended = mayFinish.then(() => ended.promise)
    return { mayTake, taken: taken.resolve, mayFinish, ended: ended.resolve }
  }
}
