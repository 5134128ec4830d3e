// Time and chance, as the retries use them.

export interface Clock {
  /** Monotonic. */
  nowMs(): number
  /** Resolves after that time. Rejects with the signal's reason if it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** From 0 up to 1. */
  random(): number
}

/** Timers take at most this long. A longer sleep consists of several. */
const longestTimerMs = 2 ** 31 - 1

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  async sleep(ms, signal) {
    for (let leftMs = ms; leftMs > 0; leftMs -= longestTimerMs) await pause(leftMs, signal)
  },
  random: Math.random,
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(
      () => {
        signal?.removeEventListener('abort', abort)
        resolve()
      },
      Math.min(ms, longestTimerMs),
    )
    if (signal?.aborted) abort()
    else signal?.addEventListener('abort', abort, { once: true })
  })
}
