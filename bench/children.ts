// Programs that the benchmarks start, each in a group of its own, and a promise that every one of them ends.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Scope, until } from '../tests/support/until.ts'

/** What must be undone, last thing first. */
export class Endings implements Scope {
  #ends: (() => void | Promise<void>)[] = []
  #run: Promise<void> = Promise.resolve()

  after(end: () => void | Promise<void>): void {
    this.#ends.push(end)
  }

  /** Runs every ending, whatever the others do; called twice, both calls resolve when all has ended. */
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
  /** What it has written so far to standard output, where that is kept, and its last words on standard error. */
  output(): string
  outputPath: string
  complaint(): string
  hasEnded(): boolean
}

interface StartOptions {
  cwd?: string
  env?: Record<string, string>
  /** Ends it; unless given, SIGTERM to its group. */
  stop?: () => Promise<void>
  /** What it reads from standard input. */
  input?: string
}

/** A new folder that any user may pass through (peers drop their privileges); removed with the scope. */
export function temporaryFolder(scope: Scope, name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `posthorn-bench-${name}-`))
  chmodSync(folder, 0o711)
  scope.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 }))
  return folder
}

/** A TCP port of 127.0.0.1 that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port to be had')
  return address.port
}

/** Starts a program that stays up; it is ended with the scope, by force after 30 s. Output goes to files in `folder`. */
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
  child.on('error', () => {}) // Without a pid it is reported below.
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

/** How long a load may take: 20 messages a second, far fewer than any peer takes, and two minutes for the rest. */
export function limitOf({ count = 0, durationMs = 0 }: { count?: number; durationMs?: number }): number {
  return 120_000 + durationMs + 50 * count
}

/** Runs a program to its end, at most `timeoutMs` (120,000), and gives its standard output; throws unless it exits 0. */
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
  child.stdin.on('error', () => {}) // It may end without reading.
  child.stdin.end(options.input ?? '')
  const [code] = await once(child, 'close')
  if (code === 0) return text.out
  const reason = code === null ? 'was ended, at the latest by its time limit' : `exited ${code}`
  throw new Error(`${command.split('/').at(-1)} ${reason}: ${lastLines(text.err || text.out)}`)
}

/** Waits until `child` is as it should be; says its last words when it ends or never gets there. */
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

/** Signals a program, or with a negative number a group; one that has ended meanwhile needs none. */
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
