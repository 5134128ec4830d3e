// Reports the progress of long work every few seconds, in words for people.
const everyMs = 3_000

export class ProgressReporter {
  readonly #progress: (line: string) => void
  #spokenMs = performance.now()

  constructor(progress: (line: string) => void) {
    this.#progress = progress
  }

  /** Reports the line, unless another was reported within `everyMs`. */
  say(line: () => string): void {
    const nowMs = performance.now()
    if (nowMs - this.#spokenMs < everyMs) return
    this.#spokenMs = nowMs
    this.#progress(line())
  }

  /** Passes `pieces` on and reports how many bytes there were. */
  async *through(pieces: AsyncIterable<Buffer>, line: (amount: string) => string): AsyncGenerator<Buffer> {
    let bytes = 0
    for await (const piece of pieces) {
      yield piece
      bytes += piece.length
      this.say(() => line(formatBytes(bytes)))
    }
  }
}

export function formatBytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`
}
