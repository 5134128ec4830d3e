// The program as it was at an earlier commit of this clone, with the packages of now.
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import type { Scope } from './until.ts'

const root = resolve(import.meta.dirname, '../..')
const execute = promisify(execFile)

export interface FormerProgram {
  /** Its `bin/posthorn`. */
  program: string
  commit: string
}

/**
 * The program of the commit before the newest migration came, in a folder that is gone when the scope ends. Null in a
 * copy of the project that has no history, or not enough of it.
 */
export async function extractFormerProgram(scope: Scope): Promise<FormerProgram | null> {
  const commit = await findFormerCommit()
  if (!commit) return null
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-former-'))
  scope.after(() => rmSync(folder, { recursive: true, force: true }))
  const archive = join(folder, 'program.tar')
  const parts = ['bin', 'src', 'package.json']
  await git(['archive', '--format=tar', `--output=${archive}`, commit, ...parts])
  await execute('tar', ['-xf', archive, '-C', folder])
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return { program: join(folder, 'bin/posthorn'), commit }
}

/** A migration that is not committed yet came after everything that is. */
async function findFormerCommit(): Promise<string | null> {
  if (!existsSync(join(root, '.git'))) return null
  const migrations = 'src/store/migrations'
  const newest = readdirSync(join(root, migrations)).sort().at(-1)!
  const file = `${migrations}/${newest}`
  try {
    const added = (await git(['log', '-1', '--diff-filter=A', '--format=%H', '--', file])).trim()
    const former = await git(['rev-parse', '--verify', added ? `${added}^` : 'HEAD'])
    return former.trim()
  } catch {
    // A shallow clone ends before the commit in question, and not every machine has git.
    return null
  }
}

async function git(words: string[]): Promise<string> {
  const { stdout } = await execute('git', words, { cwd: root, maxBuffer: 1 << 20 })
  return stdout
}
