// Runs test files over one PostgreSQL, whose databases they clone, and prints a summary.
import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { run } from 'node:test'
import { spec, type TestEvent } from 'node:test/reporters'
import pg from 'pg'
import { silentLog } from '../../src/base/log.ts'
import { prepareCluster } from '../../src/postgres/embedded/cluster.ts'
import { prepareDirectory } from '../../src/postgres/embedded/directory.ts'
import { noTool } from '../../src/postgres/embedded/owner.ts'
import { type EmbeddedServer, useEmbedded } from '../../src/postgres/embedded/use-embedded.ts'
import { until } from '../../tests/support/until.ts'
import { keepBusy } from './busy.ts'
import { root } from './tiers.ts'

type Failed = Extract<TestEvent, { type: 'test:fail' }>['data']

const testLimitMs = 10 * 60_000
/** Test files wait more than they compute. */
const filesAtOnce = 5
/** A browser keeps a core busy, and its tests expect the page to be ready within a deadline. */
const browsersAtOnce = 2
const mostShown = 10
const busyLoops = 3
/** Tests create and drop hundreds of databases of 300 files each. On a disk that takes a tenth of all processor time. */
const memoryFolder = '/dev/shm'
const minMemoryBytes = 4 * 2 ** 30

/** SIGINT and SIGTERM end the tests first, then their PostgreSQL, so that an interrupted run leaves nothing behind. */
const interrupted = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupted.abort())

/** Runs `body` with a PostgreSQL for tests. Prints at the end how many nodes the tests started. */
export async function overPostgres<Result>(body: () => Promise<Result>): Promise<Result> {
  const folder = mkdtempSync(join(isRoomy(memoryFolder) ? memoryFolder : tmpdir(), 'posthorn-test-'))
  const [directory, starts, cluster] = [
    join(folder, 'postgres'),
    join(folder, 'starts'),
    join(folder, 'cluster'),
  ]
  writeFileSync(starts, '')
  const prepared = await prepareDirectory(directory).catch((error) => {
    addAccount(error)
    return prepareDirectory(directory)
  })
  await prepareCluster(prepared, () => {})
  execFileSync('cp', ['-a', prepared.cluster, cluster])
  const server = await useEmbedded({ directory, log: silentLog })
  // Test files inherit these. The shared compile cache halves the startup cost of each file.
  process.env['NODE_COMPILE_CACHE'] ??= join(root, 'node_modules/.cache/posthorn')
  process.env['POSTHORN_TEST_POSTGRES'] = directory
  process.env['POSTHORN_TEST_CLUSTER'] = cluster
  process.env['POSTHORN_TEST_STARTS'] = starts
  try {
    return await body()
  } finally {
    console.log(describeStarts(readFileSync(starts, 'utf8').split('\n').slice(0, -1)))
    await untilTestsLeft(server)
    await server.release()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Describes how many nodes were started, and which files started most. */
function describeStarts(files: string[]): string {
  const most = [...Map.groupBy(files, (file) => relative(root, file))]
    .map(([file, { length }]) => `${String(length).padStart(4)}  ${file}`)
    .sort()
    .reverse()
    .slice(0, mostShown)
  return [`nodes started: ${files.length}${most.length > 0 ? ', most of them by' : ''}`, ...most].join('\n')
}

/** Waits for interrupted tests to disconnect. A test that still uses the server would restart it if it stopped now. */
async function untilTestsLeft({ connection }: EmbeddedServer): Promise<void> {
  const client = new pg.Client(connection)
  await client.connect()
  const isAlone = async () => {
    const sessions = await client.query(
      "select from pg_stat_activity where application_name = 'posthorn share'",
    )
    return sessions.rowCount === 1
  }
  await until('the tests to leave PostgreSQL', isAlone).finally(() => client.end())
}

function isRoomy(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize >= minMemoryBytes
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

/** Adds PostgreSQL's account to `/etc/passwd`, for root in a container without useradd. */
function addAccount(error: Error): void {
  if (!error.message.includes(noTool)) throw error
  appendFileSync('/etc/passwd', 'posthorn:x:64990:64990::/nonexistent:/sbin/nologin\n')
}

/** Runs the files. Prints every test, the slowest files, and a line for each failure. Resolves with whether all passed. */
export async function runOnce(files: string[]): Promise<boolean> {
  const { passed, failures, seconds } = await runFiles(files, 'printed')
  console.log('\nThe slowest files:')
  const slowest = [...seconds].sort((a, b) => b[1] - a[1]).slice(0, mostShown)
  for (const [file, duration] of slowest) console.log(`${duration.toFixed(1).padStart(8)} s  ${file}`)
  for (const failed of failures) console.log(describe(failed))
  return passed
}

/**
 * Runs the files `rounds` times next to three busy loops. Prints failures, and at the end how often each file passed.
 * Resolves with whether every file passed every time.
 */
export async function runSteadily(files: string[], rounds: number): Promise<boolean> {
  const passes = new Map(files.map((file) => [file, 0]))
  let allPassed = true
  const endLoops = keepBusy(busyLoops)
  try {
    for (let round = 1; round <= rounds && !interrupted.signal.aborted; round++) {
      const { passed, failures } = await runFiles(files, 'silent')
      for (const failed of failures) console.log(describe(failed))
      const failedFiles = new Set(failures.map(fileOf))
      for (const file of files) if (!failedFiles.has(file)) passes.set(file, passes.get(file)! + 1)
      allPassed &&= passed
      console.log(`round ${round} of ${rounds}: ${passed ? 'passed' : 'FAILED'}`)
    }
  } finally {
    endLoops()
  }
  for (const [file, count] of passes) console.log(`${String(count).padStart(4)} of ${rounds}  ${file}`)
  return allPassed
}

interface Outcome {
  passed: boolean
  failures: Failed[]
  /** Duration by file. */
  seconds: Map<string, number>
}

async function runFiles(files: string[], output: 'printed' | 'silent'): Promise<Outcome> {
  const outcome: Outcome = { passed: true, failures: [], seconds: new Map() }
  const isBrowser = (file: string) => file.startsWith('tests/browser/')
  await runSome(files.filter(isBrowser), browsersAtOnce, output, outcome)
  await runSome(
    files.filter((file) => !isBrowser(file)),
    filesAtOnce,
    output,
    outcome,
  )
  return outcome
}

async function runSome(
  files: string[],
  concurrency: number,
  output: 'printed' | 'silent',
  outcome: Outcome,
): Promise<void> {
  if (files.length === 0) return
  const paths = files.map((file) => resolve(root, file))
  const events = run({ files: paths, concurrency, timeout: testLimitMs, signal: interrupted.signal })
  // One summary for each file, and one for all.
  events.on('test:summary', ({ file, duration_ms, success }) => {
    if (file) outcome.seconds.set(relative(root, file), duration_ms / 1000)
    outcome.passed &&= success
  })
  events.on('test:fail', (failed) => {
    if (!areItsTests(failed)) outcome.failures.push(failed)
  })
  const printer = new spec()
  for await (const text of events.compose(printer)) if (output === 'printed') process.stdout.write(text)
  outcome.passed &&= !interrupted.signal.aborted
}

function fileOf({ file }: Failed): string {
  return relative(root, file ?? '')
}

/** Returns whether a test failed only because of its subtests, which have their own lines. */
function areItsTests({ details: { error } }: Failed): boolean {
  return (error as Error & { failureType?: string }).failureType === 'subtestsFailed'
}

function describe(failed: Failed): string {
  const { error } = failed.details
  const { message } = error.cause instanceof Error ? error.cause : error
  const words = message.replaceAll(/\s+/g, ' ').slice(0, 300)
  return `FAILED ${fileOf(failed)}:${failed.line}: ${failed.name}: ${words}`
}
