// CPU and memory of running programs, read from /proc for whole process trees, ended children included.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

export interface Memory {
  rssBytes: number
  /** Shared pages are divided among the programs that share them. */
  pssBytes: number
  /** The sum of the peak resident sizes of all programs. */
  peakBytes: number
}

interface Program {
  pid: number
  parent: number
  name: string
  cpuMs: number
}

/** Linux reports CPU time to user space in hundredths of a second. */
const tickMs = 10

/** Returns the pids of `root` and all its running descendants. */
export function treeOf(root: number): number[] {
  const all = programs()
  const tree = new Set([root])
  // Each pass finds at least one more generation.
  for (let size = 0; size !== tree.size; ) {
    size = tree.size
    for (const { pid, parent } of all) if (tree.has(parent)) tree.add(pid)
  }
  return all.map(({ pid }) => pid).filter((pid) => tree.has(pid))
}

/** Returns the pids of programs called `name` whose working directory is in `folder`. */
export function programsIn(folder: string, name: string): number[] {
  return programs()
    .filter((program) => program.name === name && workingFolder(program.pid)?.startsWith(folder))
    .map(({ pid }) => pid)
}

/** Returns the CPU milliseconds that these programs and their ended children have used since they started. */
export function cpuMsOf(pids: number[]): number {
  const wanted = new Set(pids)
  let sum = 0
  for (const { pid, cpuMs } of programs()) if (wanted.has(pid)) sum += cpuMs
  return sum
}

/** Returns the summed memory of these programs. */
export function memoryOf(pids: number[]): Memory {
  const sum: Memory = { rssBytes: 0, pssBytes: 0, peakBytes: 0 }
  for (const pid of pids) {
    const rollup = readProc(pid, 'smaps_rollup')
    const status = readProc(pid, 'status')
    sum.rssBytes += kibibytes(rollup, 'Rss') * 1024
    sum.pssBytes += kibibytes(rollup, 'Pss') * 1024
    sum.peakBytes += kibibytes(status, 'VmHWM') * 1024
  }
  return sum
}

function programs(): Program[] {
  const found: Program[] = []
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const stat = readProc(Number(entry), 'stat')
    const close = stat.lastIndexOf(')')
    if (close < 0) continue
    // proc(5): after the name come state, ppid, …; fields 14 to 17 are utime, stime, cutime, cstime.
    const fields = stat.slice(close + 2).split(' ')
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
    found.push({
      pid: Number(entry),
      parent: Number(fields[1]),
      name: stat.slice(stat.indexOf('(') + 1, close),
      cpuMs: ticks * tickMs,
    })
  }
  return found
}

function workingFolder(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    return null // The program has ended, or belongs to another user.
  }
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return '' // The program has ended.
  }
}

function kibibytes(text: string, label: string): number {
  return Number(new RegExp(`^${label}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0)
}
