// Commands of Posthorn as they are typed: run in this process by their own definition, or as the program that they are.
import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { Writable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'

const testedProgram = process.env['POSTHORN_TEST_PROGRAM']
// Another build, an installed package say, can be put before the same judges.
export const ownProgram = testedProgram ?? resolve(import.meta.dirname, '../../bin/posthorn')

/** A command or a program gets this long. */
const limitMs = 120_000

interface Finished {
  status: number | null
  stdout: string
  stderr: string
}

/** Runs a program to its end, 120 s at most; its exit status is an answer, not an error. */
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
    // A program that does not read its input has said so by its exit status.
    child.stdin!.on('error', () => {})
    child.stdin!.end(input)
  })
}

/**
 * Runs `posthorn` with these words, and nobody at its keyboard, to its end, 120 s at most: in this process, which saves
 * the two seconds that another one takes to begin. It is a process all the same if another build is tested, or if `env`
 * has something for Node itself. `demo`, and a `serve` that may start, listen for signals: they are for `run`.
 */
export async function runCommand(
  words: string[],
  env: Record<string, string>,
  folder: string,
): Promise<Finished> {
  if (testedProgram !== undefined || isForNode(env)) return await run(ownProgram, words, env, folder)
  // Most files of tests that import this one run no command.
  const program = await import('../../src/cli/run-command.ts')
  const [stdout, stderr] = [capture(), capture()]
  const terminal = {
    folder,
    environment: env,
    stdin: null,
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

/** Node reads its part of the environment when it starts, and not again. */
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
