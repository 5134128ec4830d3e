// The command line as a process: runs the command of its arguments at its own streams, and ends with the status of it.
import { runCommand } from './cli/run-command.ts'

// `posthorn … | head` has read enough: that is no fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))

process.exitCode = await runCommand(process.argv.slice(2), {
  environment: process.env,
  console,
  stdout: process.stdout,
  exitStatus: 0,
  // A stream is opened, and a folder that may be gone is asked for, by the commands alone that need it.
  get folder() {
    return process.cwd()
  },
  get stdin() {
    return process.stdin
  },
  get stderr() {
    return process.stderr
  },
})
