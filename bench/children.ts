// Programs that the benchmarks start, each in its own process group, with a guarantee that every one is ended.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Scope, until } from '../tests/support/until.ts'

/** Cleanup steps. The last one added runs first. */
export class Endings implements Scope {
  #ends: (() => void | Promise<void>)[] = []
  #run: Promise<void> = Promise.resolve()

  after(end: () => void | Promise<void>): void {
    this.#ends.push(end)
  }

  /** Runs every cleanup step, even if some fail. A second call resolves together with the first. */
  run(): Promise<void> {
    this.#run = this.#run.then(() => this.#drain())
    return this.#run
  }

  async #drain(): Promise<void> {
    for (let end = this.#ends.pop(); end; end = this.#ends.pop()) {
      try {
        await end()
      } catch (error) {
        process.stderr.write(`bench: while cleaning up: ${(error as Error).message}\n`)
      }
    }
  }
}

export interface Child {
  pid: number
  /** Standard output so far if it is kept, and the end of standard error. */
  output(): string
  outputPath: string
  complaint(): string
  hasEnded(): boolean
}

interface StartOptions {
  cwd?: string
  env?: Record<string, string>
  /** Ends the program. The default sends SIGTERM to its group. */
  stop?: () => Promise<void>
  /** The text that the program reads from standard input. */
  input?: string
}

/** Makes a new folder that any user may enter (peers drop their privileges). The scope removes it. */
export function temporaryFolder(scope: Scope, name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `posthorn-bench-${name}-`))
  chmodSync(folder, 0o711)
  scope.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 }))
  return folder
}

/** Finds a TCP port of 127.0.0.1 that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port to be had')
  return address.port
}

/** Starts a program that stays up. The scope ends it, by force after 30 s. Output goes to files in `folder`. */
export function startChild(
  scope: Scope,
  folder: string,
  command: string,
  args: string[],
  options: StartOptions = {},
): Child {
  const name = `${command.split('/').at(-1)}-${Date.now()}`
  const files = { out: join(folder, `${name}.out`), err: join(folder, `${name}.err`) }
  const descriptors = [openSync(files.out, 'w'), openSync(files.err, 'w')] as const
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', ...descriptors],
    detached: true,
  })
  for (const descriptor of descriptors) closeSync(descriptor)
  child.on('error', () => {}) // The check of the pid below reports it.
  if (child.pid === undefined) throw new Error(`${command} cannot be started`)
  scope.after(() => end(child, options.stop))
  return {
    pid: child.pid,
    output: () => readFileSync(files.out, 'utf8'),
    outputPath: files.out,
    complaint: () => readFileSync(files.err, 'utf8').slice(-2000).trim(),
    hasEnded: () => hasEnded(child),
  }
}

/** The time limit of a load: 20 messages a second, far fewer than any peer takes, plus two minutes. */
export function limitOf({ count = 0, durationMs = 0 }: { count?: number; durationMs?: number }): number {
  return 120_000 + durationMs + 50 * count
}

/** Runs a program to its end within `timeoutMs` (120,000). Returns its standard output. Throws unless it exits 0. */
export async function runChild(
  command: string,
  args: string[],
  options: StartOptions & { timeoutMs?: number } = {},
): Promise<string> {
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: options.timeoutMs ?? 120_000,
    killSignal: 'SIGKILL',
  })
  const text = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (chunk) => (text.out += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk) => (text.err += chunk))
  child.stdin.on('error', () => {}) // The program may end without reading.
  child.stdin.end(options.input ?? '')
  const [code] = await once(child, 'close')
  if (code === 0) return text.out
  const reason = code === null ? 'was ended, at the latest by its time limit' : `exited ${code}`
  throw new Error(`${command.split('/').at(-1)} ${reason}: ${lastLines(text.err || text.out)}`)
}

/** Waits until `child` is ready. Throws with the end of its output if it exits or never becomes ready. */
export async function untilReady<Found>(
  child: Child,
  what: string,
  condition: () => Found | Promise<Found>,
): Promise<NonNullable<Found>> {
  try {
    return await until(what, () => {
      if (child.hasEnded()) throw new Error(`${what}: it ended`)
      return condition()
    })
  } catch (error) {
    throw new Error(`${(error as Error).message} ${lastLines(child.complaint() || child.output())}`.trim())
  }
}

async function end(child: ChildProcess, stop?: () => Promise<void>): Promise<void> {
  if (hasEnded(child)) return
  const exit = once(child, 'exit')
  const force = setTimeout(() => signal(-child.pid!, 'SIGKILL'), 30_000)
  if (stop) await stop().catch(() => signal(-child.pid!, 'SIGTERM'))
  else signal(-child.pid!, 'SIGTERM')
  await exit
  clearTimeout(force)
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

/** Signals a program, or a group if the number is negative. Does nothing if the program has already ended. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function lastLines(text: string): string {
  return text.trim().split('\n').slice(-3).join(' / ').slice(0, 400)
}
