// Processes that keep the processors busy, so that a test which needs a quiet machine is found out.
import { type ChildProcess, spawn } from 'node:child_process'

/** Starts so many endless loops; the function that is returned ends them. They end with this process, too. */
export function keepBusy(count: number): () => void {
  // A loop looks every second whether its parent is still there.
  const loop = `const parent = process.ppid
    for (;;) { const end = Date.now() + 1000; while (Date.now() < end); if (process.ppid !== parent) process.exit() }`
  const loops: ChildProcess[] = []
  for (let started = 0; started < count; started++)
    loops.push(spawn(process.execPath, ['-e', loop], { stdio: 'ignore' }))
  return () => {
    for (const child of loops) child.kill('SIGKILL')
  }
}
