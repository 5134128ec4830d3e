// Whether more mail comes than is taken: for most of the time a commit of several senders' mail is under way.

/** With so many mails in a commit, several senders wait at once. One sender alone can keep a slow disk busy. */
const saturatedRows = 2
/** The share of the time during which such commits are in flight from which on the server is saturated. */
const saturatedShare = 0.5

export class Saturation {
  /** For which share of the time commits of several mails were in flight, lately. */
  #share = 0
  /** Since when one is under way; there is one commit at a time. */
  #sinceMs: number | null = null
  /** How long they were in flight since it was asked. */
  #inFlightMs = 0
  #askedMs = performance.now()

  /** Notes for how long this commit of so many mails is under way. */
  async during<Result>(mails: number, commit: () => Promise<Result>): Promise<Result> {
    if (mails >= saturatedRows) this.#sinceMs = performance.now()
    try {
      return await commit()
    } finally {
      this.#count(performance.now())
      this.#sinceMs = null
    }
  }

  /** Whether commits of several mails were in flight for most of the time since this was asked last. */
  isSaturated(): boolean {
    const nowMs = performance.now()
    this.#count(nowMs)
    this.#share = (this.#share + this.#inFlightMs / Math.max(1, nowMs - this.#askedMs)) / 2
    this.#inFlightMs = 0
    this.#askedMs = nowMs
    if (this.#sinceMs !== null) this.#sinceMs = nowMs
    return this.#share > saturatedShare
  }

  #count(untilMs: number): void {
    if (this.#sinceMs !== null) this.#inFlightMs += untilMs - this.#sinceMs
  }
}
