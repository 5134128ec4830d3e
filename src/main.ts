// The command line: reads the arguments, runs one command, and turns what went wrong into one line and an exit status.
import { CommanderError } from 'commander'
import { ServiceError, StartRefused } from './base/errors.ts'
import { inertText } from './cli/inert-text.ts'
import { createProgram } from './cli/program.ts'
import { SettingError } from './config/setting-reader.ts'
import { DbFault } from './postgres/db.ts'
import { EmbeddedError } from './postgres/embedded/embedded-error.ts'
import { MigrationError } from './postgres/migrate.ts'

const failed = 1
const usage = 2

// `posthorn … | head` has read enough: that is no fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) =>
  process.exit(error.code === 'EPIPE' ? 0 : failed),
)

try {
  await createProgram().parseAsync()
} catch (error) {
  process.exitCode = report(error)
}

/** Prints what a person can act on; a stack only for what is our bug. */
function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : usage
  const expected = [ServiceError, SettingError, StartRefused, MigrationError, EmbeddedError]
  if (expected.some((kind) => error instanceof kind))
    console.error(`posthorn: ${inertText((error as Error).message)}`)
  else if (error instanceof DbFault) console.error(`posthorn: the database: ${error.message}`)
  else if (isOfTheSystem(error)) console.error(`posthorn: ${error.message.split('\n', 1)[0]}`)
  else console.error(error)
  return failed
}

/** What the machine refuses: a file, an address. Its words name it. */
function isOfTheSystem(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string'
}
