// Checks that a test performs every changing operation of the pages by keyboard alone, without a mouse.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keyboardDeeds } from '../support/keyboard-deeds.ts'
import { lineAt, parse, readSources, type SourceFile, type SyntaxNode, walk } from './source.ts'

const changing = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

/** Finds calls such as `api.POST('/v1/keys/{keyId}/rotate', …)`. The desk's client has its own prefix. */
function changesOf(file: SourceFile): string[] {
  const found: string[] = []
  const prefix = file.path.startsWith('dashboard/src/desk/') ? '/desk/v1' : '/app'
  walk(parse(file).program, (node) => {
    if (node.type !== 'CallExpression') return
    const [path] = node['arguments'] as SyntaxNode[]
    const method = methodOf(node['callee'] as SyntaxNode)
    if (method)
      found.push(`${method} ${prefix}${pathOf(path, `${file.path}:${lineAt(file.text, node.start)}`)}`)
  })
  return found
}

function methodOf({ type, object, property }: SyntaxNode): string | null {
  if (type !== 'MemberExpression' || (object as SyntaxNode)['name'] !== 'api') return null
  const called = String((property as SyntaxNode)['name'])
  return changing.has(called) ? called : null
}

function pathOf(path: SyntaxNode | undefined, at: string): string {
  assert.equal(typeof path?.['value'], 'string', `${at}: write the path where it is called`)
  return String(path!['value']).replaceAll(/\{\w+\}/g, '{}')
}

test('fences: a test makes every change of a page by keys alone', () => {
  const sources = readSources('dashboard/src/**/*.{ts,tsx}').filter(({ path }) => !path.endsWith('.gen.ts'))
  const made = new Set(sources.flatMap(changesOf))
  const declared = Object.values(keyboardDeeds).flat()
  assert.deepEqual(
    [...made].sort(),
    declared.toSorted(),
    'do it in tests/browser/keyboard-….test.ts, and say so in tests/support/keyboard-deeds.ts',
  )
})

test('fences: every page calls the service through the client that the other fence reads', () => {
  const past = readSources('dashboard/src/**/*.{ts,tsx}').filter(({ text }) =>
    /\b(?:XMLHttpRequest|sendBeacon)\b|\bfetch\([^)]*\bmethod\b/s.test(text.replace(/`[^`]*`/g, '``')),
  )
  assert.deepEqual(
    past.map(({ path }) => path),
    [],
  )
})

test('fences: the keyboard tests hold no page that could be clicked', () => {
  const files = readSources('tests/browser/keyboard-*.test.ts')
  assert.deepEqual(
    files.map(({ path }) => /keyboard-(\w+)\.test/.exec(path)?.[1]).sort(),
    Object.keys(keyboardDeeds).sort(),
  )
  const pointing = files.filter(({ text }) => /playwright|openPages|\.(?:click|tap|hover|mouse)\b/.test(text))
  assert.deepEqual(
    pointing.map(({ path }) => path),
    [],
  )
})
