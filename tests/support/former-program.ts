// The program of an earlier commit of this clone, with today's packages.
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import type { Scope } from './until.ts'

const root = resolve(import.meta.dirname, '../..')
const execute = promisify(execFile)
const migrations = 'src/store/migrations/'

export interface FormerProgram {
  /** Its `bin/posthorn`. */
  program: string
  commit: string
}

/**
 * The program of a commit before the newest migration, in a folder that is removed with the scope. Null if the project's
 * history has no such commit.
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

/** The newest commit whose migrations are a proper prefix of today's, with the same text. */
async function findFormerCommit(): Promise<string | null> {
  if (!existsSync(join(root, '.git'))) return null
  const files = readdirSync(join(root, migrations)).sort()
  try {
    const now = (await git(['hash-object', '--', ...files.map((name) => migrations + name)])).split('\n')
    // An uncommitted migration is newer than all committed ones.
    const changes = await git(['log', '--format=%H %P', '--', migrations])
    for (const commit of ['HEAD', ...changes.split(/\s+/).filter(Boolean)]) {
      const listed = (await git(['ls-tree', commit, migrations])).matchAll(/ blob (\w+)\t/g)
      const then = Array.from(listed, ([, digest]) => digest)
      const isBeginning = then.every((digest, index) => digest === now[index])
      if (then.length > 0 && then.length < files.length && isBeginning)
        return (await git(['rev-parse', '--verify', commit])).trim()
    }
    return null
  } catch {
    // A shallow clone may lack the commit, and not every machine has git.
    return null
  }
}

async function git(words: string[]): Promise<string> {
  const { stdout } = await execute('git', words, { cwd: root, maxBuffer: 1 << 20 })
  return stdout
}
