// Whether two operations take equally long: times them in pairs, each pair right after the other, with statistics.

export interface PairedTimes {
  pairs: number
  medianMs: [number, number]
  meanMs: [number, number]
  /** The mean of the differences, and its distance from 0 in standard errors. */
  differenceMs: number
  t: number
  /** The percentage of pairs in which the first took longer. */
  longerPercent: number
}

/** Times `first` and `second` alternately, each pair in the other order. Both get the number of the pair. */
export async function timePairs(
  pairs: number,
  first: (n: number) => Promise<unknown>,
  second: (n: number) => Promise<unknown>,
): Promise<PairedTimes> {
  const times: [number, number][] = []
  for (let n = 0; n < pairs; n++) {
    const order = n % 2 === 0 ? [first, second] : [second, first]
    const taken: number[] = []
    for (const work of order) taken.push(await timeOf(() => work(n)))
    times.push((n % 2 === 0 ? taken : taken.reverse()) as [number, number])
  }
  return describe(times)
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now()
  await work()
  return performance.now() - startedMs
}

function describe(times: [number, number][]): PairedTimes {
  const differences = times.map(([first, second]) => first - second)
  const differenceMs = mean(differences)
  const variance = mean(differences.map((value) => (value - differenceMs) ** 2))
  const sides = [times.map(([first]) => first), times.map(([, second]) => second)] as const
  return {
    pairs: times.length,
    medianMs: [median(sides[0]), median(sides[1])],
    meanMs: [mean(sides[0]), mean(sides[1])],
    differenceMs,
    t: differenceMs / Math.sqrt(variance / times.length),
    longerPercent: (100 * differences.filter((value) => value > 0).length) / times.length,
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]!
}
