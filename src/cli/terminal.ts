// The terminal of a command: its folder, environment and streams, the process's or a caller's own.
import type { Environment } from '../config/setting-reader.ts'

/** A stream that a command writes to. If it is a terminal, a person reads it. */
export interface Output extends NodeJS.WritableStream {
  isTTY?: boolean
  columns?: number
}

export interface Terminal {
  /** The folder of `.env` and of relative paths. */
  readonly folder: string
  readonly environment: Environment
  /** Null if input is impossible. */
  readonly stdin: NodeJS.ReadStream | null
  readonly stdout: Output
  readonly stderr: Output
  /** Writes to `stdout` and `stderr`. */
  readonly console: Pick<Console, 'log' | 'error'>
  /** The exit status of a command that does not throw: 0, unless the command sets another. */
  exitStatus: number
}
