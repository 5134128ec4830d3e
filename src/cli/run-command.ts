// Runs one command, and turns a failure into one line and an exit status.
import { CommanderError } from 'commander'
import { ServiceError, StartRefused } from '../base/errors.ts'
import { SettingError } from '../config/setting-reader.ts'
import { DbFault } from '../postgres/db.ts'
import { EmbeddedError } from '../postgres/embedded/embedded-error.ts'
import { MigrationError } from '../postgres/migrate.ts'
import { inertText } from './inert-text.ts'
import { createProgram } from './program.ts'
import type { Terminal } from './terminal.ts'

const failed = 1
const usage = 2

/** Runs the command of these words, as if they were typed after `posthorn`. Resolves with its exit status. */
export async function runCommand(words: readonly string[], terminal: Terminal): Promise<number> {
  try {
    await createProgram(terminal).parseAsync(words, { from: 'user' })
    return terminal.exitStatus
  } catch (error) {
    return report(error, terminal)
  }
}

/** Prints a message that a person can act on. Prints a stack only for our bugs. */
function report(error: unknown, { console }: Terminal): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : usage
  const expected = [ServiceError, SettingError, StartRefused, MigrationError, EmbeddedError]
  if (expected.some((kind) => error instanceof kind))
    console.error(`posthorn: ${inertText((error as Error).message)}`)
  else if (error instanceof DbFault) console.error(`posthorn: database: ${error.message}`)
  else if (isOfTheSystem(error)) console.error(`posthorn: ${error.message.split('\n', 1)[0]}`)
  else console.error(error)
  return failed
}

/** Whether the operating system refused something, such as a file or an address, which its message names. */
function isOfTheSystem(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string'
}
