// Keeps the processors busy, so that tests that need a quiet machine fail and are found.
import { type ChildProcess, spawn } from 'node:child_process'

/** Starts `count` endless loops. The returned function ends them. They also end with this process. */
export function keepBusy(count: number): () => void {
  // Each loop checks once a second that its parent still runs.
  const loop = `const parent = process.ppid
    for (;;) { const end = Date.now() + 1000; while (Date.now() < end); if (process.ppid !== parent) process.exit() }`
  const loops: ChildProcess[] = []
  for (let started = 0; started < count; started++)
    loops.push(spawn(process.execPath, ['-e', loop], { stdio: 'ignore' }))
  return () => {
    for (const child of loops) child.kill('SIGKILL')
  }
}
