// Look-ups under a deadline of the caller: what is not known by then is temporary, and nothing more is asked.
import type { Lookup } from './lookup.ts'

const cutOff = { status: 'temporary', reason: 'the time for the check was up' } as const

/**
 * Does `work` with look-ups that end when `signal` aborts: those that wait then, and those that are begun later, are
 * `temporary`, and `wasCutOff` is true from the first of them on. Without a signal none is.
 */
export async function lookupUntil<Result>(
  lookup: Lookup,
  signal: AbortSignal | undefined,
  work: (lookup: Lookup, wasCutOff: () => boolean) => Promise<Result>,
): Promise<Result> {
  if (!signal) return work(lookup, () => false)
  const late = Promise.withResolvers<typeof cutOff>()
  const end = () => late.resolve(cutOff)
  let count = 0
  const bounded: Lookup = async (type, name) => {
    const answer = signal.aborted ? cutOff : await Promise.race([lookup(type, name), late.promise])
    if (answer === cutOff) count++
    return answer
  }
  signal.addEventListener('abort', end, { once: true })
  try {
    return await work(bounded, () => count > 0)
  } finally {
    signal.removeEventListener('abort', end)
  }
}
