// What comes in time, or what is said instead.

/** At once, or later. */
export type Awaitable<Result> = Result | Promise<Result>

/**
 * Settles as `work` does, or as `late` once `ms` have passed; the work goes on unattended. The wait keeps no program
 * alive.
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
