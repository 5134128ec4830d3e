// SIGINT and SIGTERM: the first starts an orderly stop, a later one ends the process at once.

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
