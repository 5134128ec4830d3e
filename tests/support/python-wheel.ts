// The Python client as its users get it: its wheel, unpacked in an empty folder as pip does.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { run } from './command.ts'
import { inherited } from './service.ts'
import type { Scope } from './until.ts'

const root = resolve(import.meta.dirname, '../..')
const source = join(root, 'sdk/python')

/** The reason to skip a test that needs Python, or false. */
export const withoutPython = spawnSync('python3', ['--version']).error ? 'python3 is not installed' : false

async function execute(file: string, args: string[], folder: string): Promise<string> {
  const { status, stdout, stderr } = await run(file, args, inherited(), folder)
  assert.equal(status, 0, `${file} ${args.join(' ')}\n${stdout}\n${stderr}`)
  return stdout
}

/** Returns a folder for `PYTHONPATH`. Needs no network, and no pip. */
export async function installWheel(scope: Scope): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-wheel-'))
  scope.after(() => rmSync(folder, { recursive: true, force: true }))
  if (!existsSync(join(source, 'src/posthorn/types.py')))
    await execute(process.execPath, [join(root, 'scripts/api-types.ts')], root)
  const build = 'import backend, sys; print(backend.build_wheel(sys.argv[1]))'
  const wheel = await execute('python3', ['-B', '-c', build, folder], source)
  const site = join(folder, 'site')
  await execute('python3', ['-m', 'zipfile', '-e', join(folder, wheel.trim()), site], folder)
  return site
}
