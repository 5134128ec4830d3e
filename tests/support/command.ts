// Runs Posthorn's commands as they are typed, in this process by their own definition or as a program.
import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { type Readable, Writable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'

const testedProgram = process.env['POSTHORN_TEST_PROGRAM']
// The same tests can judge another build, such as an installed package.
export const ownProgram = testedProgram ?? resolve(import.meta.dirname, '../../bin/posthorn')

/** The time limit of a command or a program. */
const limitMs = 120_000

interface Finished {
  status: number | null
  stdout: string
  stderr: string
}

/** Runs a program for up to 120 s. A nonzero exit status does not throw. */
export function run(
  file: string,
  args: string[],
  env: Record<string, string>,
  cwd: string,
  input?: Buffer,
): Promise<Finished> {
  return new Promise((resolve) => {
    const options = { env, cwd, timeout: limitMs, maxBuffer: 64 << 20 }
    const child = execFile(file, args, options, (error, stdout, stderr) => {
      const status = error ? (typeof error.code === 'number' ? error.code : null) : 0
      resolve({ status, stdout, stderr: status === null ? `${error?.message}\n${stderr}` : stderr })
    })
    // A program that does not read its input reports the reason by its exit status.
    child.stdin!.on('error', () => {})
    child.stdin!.end(input)
  })
}

/**
 * Runs `posthorn` with these words and without a terminal, for up to 120 s, by default without standard input. It runs in
 * this process, which saves the two seconds that a new process takes to start. It runs as a process if another build is
 * tested, or if `env` has settings for Node itself. Use `run` for `demo`, and for a `serve` that may start, because they
 * listen for signals.
 */
export async function runCommand(
  words: string[],
  env: Record<string, string>,
  folder: string,
  stdin: Readable | null = null,
): Promise<Finished> {
  if (testedProgram !== undefined || isForNode(env)) return await run(ownProgram, words, env, folder)
  // Most test files that import this module run no command.
  const program = await import('../../src/cli/run-command.ts')
  const [stdout, stderr] = [capture(), capture()]
  const terminal = {
    folder,
    environment: env,
    stdin: stdin as NodeJS.ReadStream | null,
    stdout: stdout.stream,
    stderr: stderr.stream,
    console: new console.Console(stdout.stream, stderr.stream),
    exitStatus: 0,
  }
  const ended = new AbortController()
  const late = pause(limitMs, null, { signal: ended.signal }).catch(() => null)
  const status = await Promise.race([program.runCommand(words, terminal), late]).finally(() => ended.abort())
  const hint = status === null ? `posthorn ${words.join(' ')} had not ended after ${limitMs} ms\n` : ''
  return { status, stdout: stdout.text(), stderr: `${hint}${stderr.text()}` }
}

/** Node reads its environment variables only when it starts. */
function isForNode(env: Record<string, string>): boolean {
  return Object.entries(env).some(([name, value]) => name.startsWith('NODE_') && value !== process.env[name])
}

function capture(): { stream: Writable; text(): string } {
  const pieces: Buffer[] = []
  const write = (piece: Buffer, _encoding: BufferEncoding, done: () => void) => {
    pieces.push(piece)
    done()
  }
  return { stream: new Writable({ write }), text: () => Buffer.concat(pieces).toString() }
}
