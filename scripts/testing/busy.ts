// Processes that keep the processors busy, so that a test which needs a quiet machine is found out.
import { type ChildProcess, spawn } from 'node:child_process'

/** Starts `count` endless loops. The function it returns ends them; they also end when this process does. */
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
