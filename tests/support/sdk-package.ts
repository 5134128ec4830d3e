// The TypeScript SDK as its users get it: built, packed, and installed into an empty folder.
import assert from 'node:assert/strict'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { run } from './command.ts'
import { inherited } from './service.ts'
import type { Scope } from './until.ts'

const root = resolve(import.meta.dirname, '../..')
const source = join(root, 'sdk/typescript')

async function execute(file: string, args: string[], folder: string): Promise<string> {
  const { status, stdout, stderr } = await run(file, args, inherited(), folder)
  assert.equal(status, 0, `${file} ${args.join(' ')}\n${stdout}\n${stderr}`)
  return stdout
}

/** Returns the path of the tarball, and a folder in which it is installed. Needs no registry. */
export async function installSdk(scope: Scope): Promise<{ folder: string; tarball: string }> {
  const temporary = mkdtempSync(join(tmpdir(), 'posthorn-sdk-'))
  scope.after(() => rmSync(temporary, { recursive: true, force: true }))
  const [built, folder] = [join(temporary, 'built'), join(temporary, 'program')]
  for (const made of [built, folder]) mkdirSync(made)
  if (!existsSync(join(source, 'src/api.gen.ts')))
    await execute(process.execPath, [join(root, 'scripts/api-types.ts')], root)
  await execute(join(root, 'node_modules/.bin/tsc'), ['-p', source, '--outDir', join(built, 'dist')], root)
  for (const part of ['package.json', 'README.md', 'bin'])
    cpSync(join(source, part), join(built, part), { recursive: true })
  const [tarball] = JSON.parse(
    await execute('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', temporary], built),
  ) as { filename: string }[]
  const path = join(temporary, tarball!.filename)
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}')
  await execute('npm', ['install', '--offline', path], folder)
  return { folder, tarball: path }
}
