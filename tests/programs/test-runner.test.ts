// `npm test` names each failed file, whatever the failure, and leaves nothing behind when it is interrupted.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { isRunning } from '../../src/postgres/embedded/postmaster.ts'
import { until } from '../support/until.ts'

const root = resolve(import.meta.dirname, '../..')

const files: Record<string, string> = {
  'passes.test.js': "test('passes', () => {})",
  'fails.test.js': "test('fails', () => assert.equal(1, 2))",
  'fails-within.test.js': "test('outer', async (t) => { await t.test('inner', () => assert.equal(1, 2)) })",
  'hook.test.js': "after(() => assert.fail('no end'))\ntest('passes', () => {})",
  'throws.test.js': "throw new Error('at once')",
  'exits.test.js': "test('passes', () => {})\nprocess.on('exit', () => { process.exitCode = 3 })",
}

test('files that fail in any way are named, counted, and fail the run', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-test-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, body] of Object.entries(files))
    writeFileSync(
      join(folder, name),
      `const { after, test } = require('node:test')\nconst assert = require('node:assert')\n${body}\n`,
    )

  const one = runTests([join(folder, 'passes.test.js')])
  assert.equal(one.status, 0, one.printed)
  assert.doesNotMatch(one.printed, /FAILED/)

  const steady = runTests(['--steady', '2', join(folder, '*.test.js')])
  assert.equal(steady.status, 1, steady.printed)
  for (const name of Object.keys(files)) {
    const isGood = name === 'passes.test.js'
    assert.match(steady.printed, new RegExp(`${isGood ? 2 : 0} of 2  \\S*/${name}`), name)
    assert.equal(new RegExp(`^FAILED \\S*/${name}`, 'm').test(steady.printed), !isGood, name)
  }
})

test('an interrupted run ends the PostgreSQL that a test still uses', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-test-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const [file, marker] = [join(folder, 'waits.test.js'), join(folder, 'postmaster')]
  writeFileSync(
    file,
    `const { test } = require('node:test')
const { readFileSync, writeFileSync, renameSync } = require('node:fs')
// A test that is slow to end.
process.on('SIGTERM', () => setTimeout(() => process.exit(1), 1_000))
test('waits', async (t) => {
  const { testDatabase } = await import(${JSON.stringify(join(root, 'tests/support/postgres.ts'))})
  await testDatabase(t)
  const lock = readFileSync(process.env.POSTHORN_TEST_POSTGRES + '/cluster/postmaster.pid', 'utf8')
  writeFileSync('${marker}.new', lock.split('\\n')[0])
  renameSync('${marker}.new', '${marker}')
  await new Promise((resolve) => setTimeout(resolve, 600_000))
})
`,
  )
  const { POSTHORN_TEST_DATABASE_URL: _, ...env } = runnerEnv()
  const runner = spawn(process.execPath, ['scripts/test.ts', file], { cwd: root, env, stdio: 'ignore' })
  const ended = once(runner, 'exit')
  await until('the test to have its database', () => existsSync(marker))
  const postmaster = Number(readFileSync(marker, 'utf8'))
  assert.ok(isRunning(postmaster))
  runner.kill('SIGINT')
  assert.deepEqual(await ended, [1, null])
  // Its parent has ended as well, so init reaps it at some later time.
  await until('PostgreSQL to have ended', () => !isRunning(postmaster))
})

function runnerEnv(): NodeJS.ProcessEnv {
  // Node recognizes a test within a test by this variable.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  return env
}

function runTests(args: string[]): { status: number | null; printed: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/test.ts', ...args], {
    cwd: root,
    env: runnerEnv(),
    encoding: 'utf8',
  })
  return { status, printed: stdout + stderr }
}
