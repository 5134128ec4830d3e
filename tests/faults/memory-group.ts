// A limit of memory for a service and its database: a control group of Linux, version 1 or 2.
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ownProgram } from '../support/command.ts'
import { type Scope, until } from '../support/until.ts'

/** The names of both versions' files. */
interface Files {
  folder: string
  limit: string
  highest: string
  /** Has a line `oom_kill N`. */
  kills: string
  prepare(folder: string): void
}

const first: Files = {
  folder: '/sys/fs/cgroup/memory',
  limit: 'memory.limit_in_bytes',
  highest: 'memory.max_usage_in_bytes',
  kills: 'memory.oom_control',
  prepare: () => {},
}

const second: Files = {
  folder: '/sys/fs/cgroup',
  limit: 'memory.max',
  highest: 'memory.peak',
  kills: 'memory.events',
  // Swap would hide the limit.
  prepare: (folder) => {
    const swap = join(folder, 'memory.swap.max')
    if (existsSync(swap)) writeFileSync(swap, '0')
  },
}

/** The version whose memory controller this user may use; the reason if there is none. */
function findController(): Files | string {
  if (process.platform !== 'linux') return 'control groups need Linux'
  if (process.getuid?.() !== 0) return 'a control group needs root'
  const hasSecond = (name: string) =>
    existsSync(join(second.folder, name)) &&
    readFileSync(join(second.folder, name), 'utf8').includes('memory')
  const files = hasSecond('cgroup.subtree_control')
    ? second
    : existsSync(join(first.folder, first.limit))
      ? first
      : null
  if (!files) return 'no memory controller is in /sys/fs/cgroup'
  try {
    accessSync(files.folder, constants.W_OK)
    const probe = join(files.folder, `posthorn-probe-${process.pid}`)
    mkdirSync(probe)
    rmdirSync(probe)
    return files
  } catch (error) {
    return `no control group can be made: ${(error as Error).message}`
  }
}

/** The reason why this machine cannot limit memory; null if it can. */
export function missingForMemory(): string | null {
  const found = findController()
  return typeof found === 'string' ? found : null
}

export class MemoryGroup {
  /** A `bin/posthorn` that runs in the group, with its embedded PostgreSQL. */
  readonly program: string
  readonly #files: Files
  readonly #group: string

  constructor(scope: Scope, limitBytes: number) {
    const files = findController()
    if (typeof files === 'string') throw new Error(files)
    this.#files = files
    this.#group = join(files.folder, `posthorn-${process.pid}-${limitBytes >> 20}`)
    mkdirSync(this.#group)
    scope.after(async () => {
      const processes = join(this.#group, 'cgroup.procs')
      await until('the control group to be empty', () => readFileSync(processes, 'utf8') === '')
      rmdirSync(this.#group)
    })
    files.prepare(this.#group)
    this.limit(limitBytes)
    const folder = mkdtempSync(join(tmpdir(), 'posthorn-memory-'))
    scope.after(() => rmSync(folder, { recursive: true, force: true }))
    chmodSync(folder, 0o755)
    this.program = join(folder, 'posthorn')
    const script = `#!/bin/sh\necho $$ > '${this.#group}/cgroup.procs' || exit 1\nexec '${ownProgram}' "$@"\n`
    writeFileSync(this.program, script, { mode: 0o755 })
  }

  /** Changes the limit. */
  limit(bytes: number): void {
    writeFileSync(join(this.#group, this.#files.limit), String(bytes))
  }

  /** The number of processes that the kernel has killed. */
  get kills(): number {
    return Number(/^oom_kill (\d+)$/m.exec(this.#read(this.#files.kills))?.[1] ?? 0)
  }

  /** The largest use so far, with cached files that the kernel can give back. */
  get highestBytes(): number {
    return Number(this.#read(this.#files.highest))
  }

  /** The present use without cached files. */
  get usedBytes(): number {
    const stat = this.#read('memory.stat')
    return Number(/^(?:total_rss|anon) (\d+)$/m.exec(stat)![1])
  }

  #read(name: string): string {
    return readFileSync(join(this.#group, name), 'utf8')
  }
}
