// The terminal that a command is typed at: a folder, an environment and streams, the process's or a caller's own.
import type { Environment } from '../config/setting-reader.ts'

/** A stream that a command writes to; a person reads it where it is a terminal. */
export interface Output extends NodeJS.WritableStream {
  isTTY?: boolean
  columns?: number
}

export interface Terminal {
  /** The file `.env` is here, and relative paths begin here. */
  readonly folder: string
  readonly environment: Environment
  /** Null where nobody can type. */
  readonly stdin: NodeJS.ReadStream | null
  readonly stdout: Output
  readonly stderr: Output
  /** Writes to these two. */
  readonly console: Pick<Console, 'log' | 'error'>
  /** The exit status of a command that throws nothing: 0, unless the command itself writes another one here. */
  exitStatus: number
}
