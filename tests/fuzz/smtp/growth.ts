// Detects memory growth by comparing the last third of a long run with the middle third, after one-time caches have filled.
import type { Measure } from './measure.ts'

/** Fewer measures prove nothing. */
const leastMeasures = 24
const maxHeapGrowthBytes = 6 * 2 ** 20
const maxRssGrowthBytes = 32 * 2 ** 20

/**
 * Compares the medians of the second and the last third. Returns what has grown, or null for no growth or too few
 * measures.
 */
export function grown(measures: Measure[]): string | null {
  if (measures.length < leastMeasures) return null
  const third = Math.floor(measures.length / 3)
  const middle = measures.slice(third, 2 * third)
  const end = measures.slice(-third)
  for (const [name, of, max] of [
    ['the heap', ({ heapBytes, externalBytes }: Measure) => heapBytes + externalBytes, maxHeapGrowthBytes],
    ['RSS', ({ rssBytes }: Measure) => rssBytes, maxRssGrowthBytes],
  ] as const) {
    const growth = median(end.map(of)) - median(middle.map(of))
    if (growth > max)
      return `${name} has grown by ${(growth / 2 ** 20).toFixed(1)} MiB in a third of the time`
  }
  return null
}

function median(values: number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]!
}
