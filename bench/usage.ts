// What running programs use, read from /proc: CPU and memory of whole trees, children that have ended included.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

export interface Memory {
  rssBytes: number
  /** Pages shared between programs counted once, divided among them. */
  pssBytes: number
  /** The sum of each program's own highest resident size. */
  peakBytes: number
}

interface Program {
  pid: number
  parent: number
  name: string
  cpuMs: number
}

/** Linux counts CPU time in hundredths of a second towards user space. */
const tickMs = 10

/** `root` and all its descendants that run now. */
export function treeOf(root: number): number[] {
  const all = programs()
  const tree = new Set([root])
  // A pass finds at least one more generation.
  for (let size = 0; size !== tree.size; ) {
    size = tree.size
    for (const { pid, parent } of all) if (tree.has(parent)) tree.add(pid)
  }
  return all.map(({ pid }) => pid).filter((pid) => tree.has(pid))
}

/** Every program called `name` whose working directory lies in `folder`. */
export function programsIn(folder: string, name: string): number[] {
  return programs()
    .filter((program) => program.name === name && workingFolder(program.pid)?.startsWith(folder))
    .map(({ pid }) => pid)
}

/** CPU milliseconds that these programs, and their children that have ended, have used since they began. */
export function cpuMsOf(pids: number[]): number {
  const wanted = new Set(pids)
  let sum = 0
  for (const { pid, cpuMs } of programs()) if (wanted.has(pid)) sum += cpuMs
  return sum
}

/** Memory of these programs, summed. */
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
    return null // It has ended meanwhile, or belongs to somebody else.
  }
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return '' // It has ended meanwhile.
  }
}

function kibibytes(text: string, label: string): number {
  return Number(new RegExp(`^${label}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0)
}
