// The entry point of the process: runs the command of its arguments on its own streams, and exits with its status.
import { runCommand } from './cli/run-command.ts'

// `posthorn … | head` closes stdout early: that is no fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))

process.exitCode = await runCommand(process.argv.slice(2), {
  environment: process.env,
  console,
  stdout: process.stdout,
  exitStatus: 0,
  // Getters: only commands that need a stream open it, and only those that need the folder ask for it, which may be gone.
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
