// The tiers of the tests: the quick ones of `npm test`, the long ones that `npm run test:all` adds, and those of SQL.
import { closeSync, globSync, openSync, readSync } from 'node:fs'
import { join, resolve } from 'node:path'

export const root = resolve(import.meta.dirname, '../..')

export const tiers = ['quick', 'long', 'sql'] as const
export type Tier = (typeof tiers)[number]

const every = ['src/**/*.test.ts', 'tests/**/*.test.ts', 'bench/**/*.test.ts']
const long = ['browser', 'deploy', 'faults', 'fuzz', 'interop', 'programs'].map(
  (folder) => `tests/${folder}/`,
)
/** The only browser test in `npm test`. */
const story = 'tests/browser/story.test.ts'
/** The end of the first line of test files that also run on PostgreSQL 15, the oldest supported version. */
const sqlMark = 'Also on PostgreSQL 15.'

/** Returns paths from the root, sorted. */
export function filesOf(tier: Tier): string[] {
  // Packages have test files of their own.
  const files = globSync(every, { cwd: root, exclude: (path) => path.endsWith('node_modules') }).sort()
  if (tier === 'sql') return files.filter((file) => readFirstLine(file).endsWith(sqlMark))
  const isLong = (file: string) => file !== story && long.some((folder) => file.startsWith(folder))
  return files.filter((file) => isLong(file) === (tier === 'long'))
}

function readFirstLine(path: string): string {
  const start = Buffer.alloc(400)
  const file = openSync(join(root, path), 'r')
  try {
    readSync(file, start)
  } finally {
    closeSync(file)
  }
  return start.toString().split('\n', 1)[0]!
}
