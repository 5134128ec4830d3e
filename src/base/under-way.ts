// A note on disk of what is being worked on, so that what ended the process is known at its next start.
import { ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'

/**
 * What this process works on, by ids, and what an earlier one was working on when it ended. One user a file. Nothing is
 * flushed, for a process that is killed leaves what it wrote to the system; so the calls take 10 µs, and waiting for a
 * thread to make them took 2 ms.
 */
export class UnderWay {
  readonly #path: string
  #file: number | null = null
  #isOurs = false

  constructor(path: string) {
    this.#path = path
  }

  /** What was under way when an earlier process ended; nothing once this one has noted something itself. */
  lost(): string[] {
    if (this.#isOurs) return []
    try {
      return readFileSync(this.#path, 'utf8')
        .split('\n')
        .filter((id) => id !== '')
    } catch {
      // No process has had this folder before.
      return []
    }
  }

  begin(ids: readonly string[]): void {
    this.#write(ids.join('\n'))
  }

  end(): void {
    this.#write('')
  }

  #write(text: string): void {
    this.#isOurs = true
    try {
      this.#file ??= openSync(this.#path, 'w', 0o600)
      ftruncateSync(this.#file, 0)
      if (text !== '') writeSync(this.#file, text, 0)
    } catch {
      // A full disk must not hold up the work itself.
    }
  }
}
