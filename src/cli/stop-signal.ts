// SIGINT and SIGTERM: the first starts an orderly stop, a later one ends the process at once.
import type { Log } from '../base/log.ts'

/** npm repeats a signal that the terminal has already sent to us. A signal this soon after is an echo. */
const echoMs = 500

/**
 * Calls `end` at the first signal. A second, deliberate signal exits with status 1. Returns a function that removes the
 * listener. The listener must outlast the first signal, because the echo would otherwise kill the process.
 */
export function onStopSignal(end: (signal: NodeJS.Signals) => void): () => void {
  let endedMs: number | null = null
  const receive = (signal: NodeJS.Signals) => {
    if (endedMs === null) {
      endedMs = performance.now()
      end(signal)
    } else if (performance.now() - endedMs > echoMs) process.exit(1)
  }
  process.on('SIGINT', receive).on('SIGTERM', receive)
  return () => void process.off('SIGINT', receive).off('SIGTERM', receive)
}

/** The share of the 30 s for a stop after the drain delay. It ends even a stop that hangs. */
export const hardStopMs = 28_000

export interface Stop {
  /** Aborted when the stop begins. */
  signal: AbortSignal
  /** Begins the stop, if no signal has. */
  begin(reason: string): void
}

/**
 * Begins the stop at the first signal: the service drains, or a start under way ends at its next step. A second signal, or a
 * stop longer than `limitMs`, ends the process at once.
 */
export function listenForStop(log: Log, limitMs: number): Stop {
  const stop = new AbortController()
  const begin = (reason: string) => {
    if (stop.signal.aborted) return
    log.info(
      { reason },
      'stopping: work in progress finishes, and no new work is accepted after the drain delay',
    )
    setTimeout(() => process.exit(1), limitMs).unref()
    stop.abort()
  }
  onStopSignal(begin)
  return { signal: stop.signal, begin }
}
