// Measures the CPU time of one call in this program by repeating it for the whole measurement.
import type { Sample } from './rounds.ts'

export async function measureCalls(call: () => unknown, targetMs: number): Promise<Sample> {
  const before = process.cpuUsage()
  const untilMs = performance.now() + targetMs
  let calls = 0
  for (; performance.now() < untilMs; calls++) await call()
  const { user, system } = process.cpuUsage(before)
  return { 'CPU µs/message': (user + system) / calls }
}
