// The running PostgreSQL of a folder: found by its lock file, started, stopped.
import type { ChildProcess } from 'node:child_process'
import { link, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { accessSettings, writeAccess } from './access.ts'
import { type ServerDirectory, spawnProgram } from './directory.ts'
import { EmbeddedError } from './embedded-error.ts'
import { settings } from './settings.ts'

const lockWriteMs = 5_000

/** The process that runs a cluster, from its `postmaster.pid`. */
export interface Postmaster {
  pid: number
  /** Seconds since the epoch, as PostgreSQL wrote them. With `pid` it identifies one run. */
  started: string
  /** False while it starts, recovers or stops. */
  isReady: boolean
}

/** Reads a `postmaster.pid`: pid, folder, start time, port, socket folder, address, shared memory, status. */
export function parseLock(text: string): Postmaster | null {
  const [pid, , started, , , , , status] = text.split('\n')
  if (!pid || !started || !/^\d{1,10}$/.test(pid)) return null
  return { pid: Number(pid), started, isReady: status?.trim() === 'ready' }
}

/** Returns whether there is a process with this id, of any user. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Returns the live postmaster of `cluster`; null if the lock file is missing or stale, or another process has its pid. */
export async function findPostmaster(cluster: string): Promise<Postmaster | null> {
  const lock = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => '')
  const postmaster = parseLock(lock)
  return postmaster && (await runsCluster(postmaster.pid, cluster)) ? postmaster : null
}

async function runsCluster(pid: number, cluster: string): Promise<boolean> {
  if (!isRunning(pid)) return false
  if (process.platform !== 'linux') return true
  const status = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '')
  // A zombie that its parent has not reaped answers signals but serves nothing.
  if (!/\(postgres\) [^ZX]/.test(status)) return false
  // PostgreSQL's working folder is its cluster. Root without CAP_SYS_PTRACE in a container cannot read it: assume a match.
  const working = await stat(`/proc/${pid}/cwd`).catch(() => null)
  const folder = await stat(cluster)
  return working === null || (working.dev === folder.dev && working.ino === folder.ino)
}

/** One attempt to start PostgreSQL, watched until it serves or ends. */
export class Start {
  readonly #log: string
  readonly #logOffset: number
  #ended: { code: number | null; reason: string } | null = null

  private constructor(child: ChildProcess, log: string, logOffset: number) {
    this.#log = log
    this.#logOffset = logOffset
    child.once('error', (error) => {
      this.#ended = { code: 1, reason: error.message }
    })
    child.once('exit', (code, signal) => {
      this.#ended = { code, reason: `it ended with ${signal ?? code}` }
    })
    child.unref()
  }

  /** Spawns PostgreSQL in a session of its own, so that Ctrl-C reaches the service and not its database. */
  static async begin(server: ServerDirectory): Promise<Start> {
    await dropForeignLock(join(server.cluster, 'postmaster.pid'), server.cluster)
    await dropForeignLock(join(server.socket, '.s.PGSQL.5432.lock'), server.cluster)
    await writeAccess(server.directory)
    const log = await open(server.log, 'a', 0o600)
    try {
      const { size } = await log.stat()
      const parameters = (directory: string) => [...settings, ...accessSettings(directory)]
      const options = { output: log.fd, detached: true }
      const child = spawnProgram(server, 'postgres', server.cluster, parameters, options)
      return new Start(child, server.log, size)
    } finally {
      await log.close()
    }
  }

  /**
   * Returns true if a retry may help: PostgreSQL was killed, another start was first, or processes of a killed postmaster
   * still hold the shared memory. Returns null while PostgreSQL runs. After any other end, throws `EmbeddedError` with
   * PostgreSQL's own message.
   */
  async mayRetry(): Promise<true | null> {
    if (this.#ended === null) return null
    if (this.#ended.code === null) return true
    const written = (await readFile(this.#log)).subarray(this.#logOffset).toString().slice(-20_000)
    if (/lock file .* (already exists|is empty)|shared memory block/.test(written)) return true
    const fatal = /(?:FATAL|PANIC): +(?!the database system is).*/.exec(written)?.[0] ?? ''
    throw new EmbeddedError(`PostgreSQL did not start (${this.#ended.reason}): see ${this.#log}. ${fatal}`)
  }
}

/**
 * Removes a lock file that PostgreSQL would wrongly believe. Either the pid in it belongs to another process (after a
 * reboot, in a new container) or to a zombie, or a crash left the file empty. PostgreSQL still detects its own orphaned
 * processes by their shared memory.
 */
async function dropForeignLock(path: string, cluster: string): Promise<void> {
  const before = await readFile(path, 'utf8').catch(() => null)
  if (before === null || (await mayBeTrue(before, path, cluster))) return
  const aside = `${path}.stale-${process.pid}`
  await rename(path, aside).catch(() => {})
  // Another start may have written its own lock in between: put that lock back.
  const taken = await readFile(aside, 'utf8').catch(() => before)
  if (taken !== before) await link(aside, path).catch(() => {})
  await rm(aside, { force: true })
}

async function mayBeTrue(lock: string, path: string, cluster: string): Promise<boolean> {
  const postmaster = parseLock(lock)
  // PostgreSQL itself removes the lock of a dead pid.
  if (postmaster) return !isRunning(postmaster.pid) || (await runsCluster(postmaster.pid, cluster))
  // A start writes its lock at once. A lock that stays incomplete belongs to a start that crashed.
  const writtenMs = await stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => Date.now(),
  )
  return Date.now() - writtenMs < lockWriteMs
}

/**
 * Fast shutdown: rolls back open transactions and writes a checkpoint. Resolves to true once the process has ended, a
 * moment after its lock file is gone. Resolves to false if it still runs after `limitMs`.
 */
export async function stopPostmaster(cluster: string, limitMs: number): Promise<boolean> {
  const postmaster = await findPostmaster(cluster)
  if (!postmaster) return true
  process.kill(postmaster.pid, 'SIGINT')
  const deadline = performance.now() + limitMs
  while (await runsCluster(postmaster.pid, cluster)) {
    if (performance.now() > deadline) return false
    await pause(20)
  }
  return true
}
