// Shares of a common resource: the more is taken, the less one of many may take of the rest.

/** Returns one worker's part of a service's limit: at least `least`, because a worker cannot work with less. */
export function divided(whole: number, workers: number, least = 1): number {
  return Math.max(Math.min(whole, least), Math.floor(whole / workers))
}

/**
 * Returns whether an asker that has `own` of the `taken` out of `max` may take one more. It may have up to `ratio` times
 * the number that then stays free. So some room stays free for new askers, however many there are. The first request of
 * an asker is refused only if nothing is left.
 */
export function mayTake(own: number, taken: number, max: number, ratio: number): boolean {
  const left = max - taken - 1
  return left >= 0 && (own === 0 || own + 1 <= ratio * left)
}
