// Retry delays: a schedule of steps, the last one repeated, with jitter.

/**
 * Returns the milliseconds to wait after the `failures`-th failure in a row (1 for the first). The last step repeats.
 * Jitter is up to a tenth either way, so that work that failed together does not retry together.
 */
export function backoffMs(scheduleMs: readonly number[], failures: number, random = Math.random): number {
  const step = scheduleMs[Math.min(Math.max(failures, 1), scheduleMs.length) - 1]!
  return Math.round(step * (0.9 + 0.2 * random()))
}
