// Bounds in processor time of this thread, which other load does not use up.
import assert from 'node:assert/strict'

/**
 * The first run compiles code and touches new memory, which can take many times as long on a virtual machine. Work that
 * takes more than linear time is too slow in each run.
 */
const mostRuns = 3

/** Returns the processor time of this thread since then, in ms. */
export function cpuMsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

/** Returns the processor time that the work takes in this thread, in ms. */
export function cpuMsOf(work: () => unknown): number {
  const before = process.threadCpuUsage()
  work()
  return cpuMsSince(before)
}

/** Runs the work up to three times, until a run takes less than `limitMs` of processor time. Returns its result. */
export function inCpuTime<Result>(limitMs: number, work: () => Result, name = ''): Result {
  const times: number[] = []
  for (;;) {
    let result: Result
    const tookMs = cpuMsOf(() => {
      result = work()
    })
    if (tookMs < limitMs) return result!
    times.push(Math.round(tookMs))
    assert.ok(times.length < mostRuns, `${name} took ${times.join(', ')} ms of at most ${limitMs}`)
  }
}
