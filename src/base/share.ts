// Shares of what is there for all: the more is taken, the less may one of many take of the rest.

/**
 * Whether one who has `own` of the `taken` out of `max` may take one more: never more than `ratio` for each that then
 * stays free. So some stay free for whoever comes, however many hold what they have; a first one is refused only when
 * nothing is left.
 */
export function mayTake(own: number, taken: number, max: number, ratio: number): boolean {
  const left = max - taken - 1
  return left >= 0 && (own === 0 || own + 1 <= ratio * left)
}
