// SIGINT and SIGTERM: the first asks for an orderly end, a later one ends the process at once.

/** npm repeats a signal that the terminal has already sent to us: one that follows this soon is an echo. */
const echoMs = 500

/**
 * Calls `end` at the first signal; a second one, sent on purpose, exits with status 1. Returns a function that stops listening.
 * The listener stays for both: if it were removed after the first signal, the echo would kill the process.
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
