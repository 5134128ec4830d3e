// bin/posthorn runs the built program only if it was built from the source and the packages that are there.
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { test } from 'node:test'
import { run } from '../support/command.ts'

const root = resolve(import.meta.dirname, '../..')

test('the launcher runs the built program, and the source if any of it is newer', async (t) => {
  const home = mkdtempSync(join(tmpdir(), 'posthorn-launcher-'))
  t.after(() => rmSync(home, { recursive: true, force: true }))
  cpSync(join(root, 'bin'), join(home, 'bin'), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(home, 'node_modules'))
  const write = (path: string, text: string, minute: number) => {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), text)
    utimesSync(join(home, path), minute * 60, minute * 60)
  }
  const started = async () => {
    for (const folder of ['src', 'src/flow']) utimesSync(join(home, folder), 60, 60)
    const env = { PATH: process.env['PATH']! }
    const { stdout, stderr } = await run(join(home, 'bin/posthorn'), ['a', 'b c'], env, home)
    return stdout + stderr
  }
  write('package.json', '{ "type": "module" }', 1)
  write('package-lock.json', '{}', 1)
  write('src/main.ts', 'console.log("source", ...process.argv.slice(2))', 1)
  write('src/flow/send.ts', '', 1)
  assert.equal(await started(), 'source a b c\n', 'nothing is built')
  write('dist/main.js', 'console.log("built", ...process.argv.slice(2))', 2)
  assert.equal(await started(), 'source a b c\n', 'the build was interrupted')
  write('dist/complete', '', 2)
  assert.equal(await started(), 'built a b c\n')
  write('src/flow/send.ts', '// changed', 3)
  assert.equal(await started(), 'source a b c\n', 'a module is newer')
  write('src/flow/send.ts', '', 1)
  write('package-lock.json', '{ }', 3)
  assert.equal(await started(), 'source a b c\n', 'the packages are newer')
})
