// Suggests the known word that was probably meant.

/** A suggestion differs by up to this many typing errors, and up to a third of its length. */
const maxDistance = 3

/**
 * Returns a known word that continues `given` after an underscore. Otherwise returns the known word with the fewest typing
 * errors, the first of several; null if none is near. Callers remove a prefix that all words share, because it would make
 * short words long.
 */
export function nearest(given: string, known: Iterable<string>): string | null {
  let [best, nextBest] = [null as string | null, maxDistance]
  for (const word of known) {
    if (given && word.startsWith(`${given}_`)) return word
    const most = Math.min(nextBest, Math.floor(word.length / 3))
    const distance = Math.abs(word.length - given.length) <= most ? distanceOf(given, word) : Infinity
    if (distance <= most) [best, nextBest] = [word, distance - 1]
  }
  return best
}

/** Counts the letters to insert, delete, replace or swap with their neighbour (Damerau-Levenshtein distance). */
function distanceOf(a: string, b: string): number {
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const next = [row]
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1]
      const steps = [last[column]! + 1, next[column - 1]! + 1, last[column - 1]! + (isSame ? 0 : 1)]
      const isSwapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      if (row > 1 && column > 1 && isSwapped) steps.push(before[column - 2]! + 1)
      next.push(Math.min(...steps))
    }
    ;[before, last] = [last, next]
  }
  return last[b.length]!
}
