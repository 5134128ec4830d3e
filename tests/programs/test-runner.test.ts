// What `npm test` says of files that fail, in every way that a file can.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'node:test'

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

function runTests(args: string[]): { status: number | null; printed: string } {
  // Node tells a test within a test apart by this variable.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/test.ts', ...args], {
    cwd: root,
    env,
    encoding: 'utf8',
  })
  return { status, printed: stdout + stderr }
}
