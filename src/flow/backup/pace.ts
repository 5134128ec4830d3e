// Says how far long work has come, every few seconds and in words for people.
const everyMs = 3_000

export class Pace {
  readonly #progress: (line: string) => void
  #spokenMs = performance.now()

  constructor(progress: (line: string) => void) {
    this.#progress = progress
  }

  /** Says the line, unless something was said a moment ago. */
  say(line: () => string): void {
    const nowMs = performance.now()
    if (nowMs - this.#spokenMs < everyMs) return
    this.#spokenMs = nowMs
    this.#progress(line())
  }

  /** Hands `pieces` on and says how much of them there was. */
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
