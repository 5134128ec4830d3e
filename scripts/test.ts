// `npm test`: types, lint, unused code, then every test; with file names as arguments, those tests alone.
import { type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { silentLog } from '../src/base/log.ts'
import { noTool } from '../src/postgres/embedded/owner.ts'
import { useEmbedded } from '../src/postgres/embedded/use-embedded.ts'
import { runChecks } from './checks.ts'

const root = resolve(import.meta.dirname, '..')
const patterns = ['src/**/*.test.ts', 'tests/**/*.test.ts', 'bench/**/*.test.ts']
const testLimitMs = 10 * 60_000
const filesAtOnce = 4
/** A browser keeps a core busy, and its tests wait for what people would see by then. */
const browsersAtOnce = 2

/** Runs a program to its end with our own output; answers whether it exited 0. */
async function run(program: string, args: string[], env: NodeJS.ProcessEnv = process.env): Promise<boolean> {
  const options: SpawnOptions = { cwd: root, env, stdio: 'inherit' }
  const child = spawn(program, args, options)
  const passOn = (signal: NodeJS.Signals) => child.kill(signal)
  // The tests end first, then their PostgreSQL: an interrupted run leaves nothing behind.
  process.on('SIGINT', passOn).on('SIGTERM', passOn)
  try {
    const [code] = await once(child, 'exit')
    return code === 0
  } finally {
    process.off('SIGINT', passOn).off('SIGTERM', passOn)
  }
}

/** In a root's container without useradd the account of PostgreSQL is a line in `/etc/passwd`. */
function addAccount(error: Error): void {
  if (!error.message.includes(noTool)) throw error
  appendFileSync('/etc/passwd', 'posthorn:x:64990:64990::/nonexistent:/sbin/nologin\n')
}

/** Runs test files over one PostgreSQL that files share by cloning databases. They wait more than they compute. */
async function runTests(files: string[]): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-test-'))
  const directory = join(folder, 'postgres')
  const start = () => useEmbedded({ directory, log: silentLog })
  const server = await start().catch((error) => {
    addAccount(error)
    return start()
  })
  const reporters = ['spec', join(import.meta.dirname, 'test-summary.ts')].flatMap((reporter) => [
    `--test-reporter=${reporter}`,
    '--test-reporter-destination=stdout',
  ])
  const env = {
    // Compiled once for all files, which takes half of what each of them starts with.
    NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/posthorn'),
    ...process.env,
    POSTHORN_TEST_POSTGRES: directory,
  }
  const runSome = async (some: string[], atOnce: number) => {
    const options = [...reporters, `--test-concurrency=${atOnce}`, `--test-timeout=${testLimitMs}`]
    return some.length === 0 || (await run(process.execPath, ['--test', ...options, ...some], env))
  }
  const isBrowser = (file: string) => file.startsWith('tests/browser/')
  try {
    const shown = await runSome(files.filter(isBrowser), browsersAtOnce)
    const others = files.filter((file) => !isBrowser(file))
    return (await runSome(others, filesAtOnce)) && shown
  } finally {
    await server.release()
    rmSync(folder, { recursive: true, force: true })
  }
}

const named = process.argv.slice(2)
const files = globSync(named.length > 0 ? named : patterns, { cwd: root }).sort()
if (files.length === 0) {
  console.error(`no test files match ${named.join(' ')}`)
  process.exit(2)
}
const checked = named.length > 0 || (await runChecks())
const tested = await runTests(files)
if (!checked) console.error('✖ the tests are above; before them types, lint or unused code FAILED')
process.exit(checked && tested ? 0 : 1)
