// Finds the tests that a change can affect by the modules that files import and the paths in their strings.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { root } from './tiers.ts'

/** Every test depends on these. */
const everywhere = ['package.json', 'package-lock.json', 'tsconfig.json']
const code = /(\.[cm]?[jt]sx?|\.sh|^bin\/[^/]+)$/

/**
 * Returns the tests among `files` that changes since the revision can affect, uncommitted changes included. Throws
 * git's error if there is no such revision.
 */
export function affectedSince(revision: string, files: string[]): string[] {
  return affectedBy([...git('diff', '--name-only', revision, '--'), ...untracked()], files)
}

/** Returns the tests among `files` that depend on these paths, and the fences, which read the whole tree. */
export function affectedBy(changed: string[], files: string[]): string[] {
  if (changed.some((path) => everywhere.includes(path))) return files
  const reached = reach(changed, readDependents([...git('ls-files'), ...untracked()]))
  // Browser tests show the pages that are built from this folder. No module imports it.
  const pagesChanged = changed.some((path) => path.startsWith('dashboard/'))
  // The guide is built from these files.
  const guideChanged = changed.some((path) => path.startsWith('site/') || path.endsWith('.md'))
  return files.filter(
    (file) =>
      reached.has(file) ||
      (guideChanged && file.endsWith('/guide.test.ts')) ||
      file.startsWith('tests/fences/') ||
      (pagesChanged && file.startsWith('tests/browser/')),
  )
}

function untracked(): string[] {
  return git('ls-files', '--others', '--exclude-standard')
}

function git(...args: string[]): string[] {
  const printed = execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 })
  return printed.split('\n').filter(Boolean)
}

/** Returns these paths and everything that depends on them. A file that names a folder depends on all files in it. */
function reach(paths: string[], dependents: Map<string, string[]>): Set<string> {
  const reached = new Set<string>()
  const pending = [...paths]
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    if (reached.has(path)) continue
    reached.add(path)
    for (let named = path; named !== '.'; named = dirname(named))
      pending.push(...(dependents.get(named) ?? []))
  }
  return reached
}

/** Maps each named path to the files that name it. */
function readDependents(paths: string[]): Map<string, string[]> {
  const dependents = new Map<string, string[]>()
  for (const path of paths.filter((one) => code.test(one) && existsSync(join(root, one))))
    for (const named of namedIn(path)) dependents.set(named, [...(dependents.get(named) ?? []), path])
  return dependents
}

/**
 * Returns the paths in a file's strings. They are relative to the file if they begin with a dot, else to the root, like
 * `$home/` in a shell.
 */
function namedIn(path: string): Set<string> {
  const found = new Set<string>()
  for (const [, text] of readFileSync(join(root, path), 'utf8').matchAll(
    /['"`](?:\$\w+\/)?([\w@./-]{3,200})['"`]/g,
  )) {
    if (text!.startsWith('.')) found.add(normalize(join(dirname(path), text!)).replace(/\/$/, ''))
    else if (text!.includes('/')) found.add(normalize(text!).replace(/\/$/, ''))
  }
  return found
}
