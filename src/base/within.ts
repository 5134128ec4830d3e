// Waits for a result up to a time limit, or returns a replacement.

/** A result, now or later. */
export type Awaitable<Result> = Result | Promise<Result>

/**
 * Settles as `work` does, or as `late` does once `ms` have passed. `work` then continues unobserved. The timer keeps no
 * process alive.
 */
export async function within<Result>(
  ms: number,
  work: Promise<Result>,
  late: () => Awaitable<Result>,
): Promise<Result> {
  const instead = Promise.withResolvers<Result>()
  const timer = setTimeout(() => instead.resolve(late()), ms).unref()
  try {
    return await Promise.race([work, instead.promise])
  } finally {
    clearTimeout(timer)
  }
}
