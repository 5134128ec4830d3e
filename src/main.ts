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
  else if (isAddressInUse(error))
    console.error(
      `posthorn: ${error.address}:${error.port} is taken by another program: stop it, or set another port (0 for a free one)`,
    )
  else console.error(error)
  return failed
}

function isAddressInUse(error: unknown): error is NodeJS.ErrnoException & { address: string; port: number } {
  return (error as NodeJS.ErrnoException)?.code === 'EADDRINUSE'
}
