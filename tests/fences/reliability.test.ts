// Checks that docs/reliability.md lists, for each number, the files whose tests name it; this proves none of its claims.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readSources, root } from './source.ts'

const page = join(root, 'docs/reliability.md')
const row = /^\| (\d+a?|h\d+) \| ([^|]+) \| ([^|]*) \| ([^|]*) \|$/

/**
 * Returns the files whose tests name a number, as in «check 49: …», «check 39, 63: …», «check 28, check 31: …», or
 * «hostile 3: …», which is h3.
 */
function filesByNumber(): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  for (const { path, text } of readSources('{src,tests}/**/*.test.ts')) {
    if (path.startsWith('tests/fences/')) continue
    for (const [, kind, numbers = ''] of text.matchAll(
      /\b(check|hostile) (\d+a?(?:(?:, | and )(?:\1 )?\d+a?)*):/g,
    )) {
      for (const [digits] of numbers.matchAll(/\d+a?/g)) {
        const number = kind === 'hostile' ? `h${digits}` : digits
        found.set(number, (found.get(number) ?? new Set()).add(path))
      }
    }
  }
  return found
}

test('fences: docs/reliability.md lists the tests of every number as they are', () => {
  const files = filesByNumber()
  const before = readFileSync(page, 'utf8')
  const listed = new Set<string>()
  const lines = before.split('\n').map((line) => {
    const [, number = '', demand, , note] = row.exec(line) ?? []
    if (!number) return line
    listed.add(number)
    const paths = [...(files.get(number) ?? [])].sort().map((path) => `\`${path}\``)
    return `| ${number} | ${demand} | ${paths.join(', ')} | ${note} |`
  })
  assert.deepEqual(
    [...files.keys()].filter((number) => !listed.has(number)),
    [],
    'these numbers have tests and no row',
  )
  const after = lines.join('\n')
  if (process.env['POSTHORN_TEST_REWRITE'] === '1') writeFileSync(page, after)
  else
    assert.equal(
      before,
      after,
      'POSTHORN_TEST_REWRITE=1 npm test -- tests/fences/reliability.test.ts mends it',
    )
})
