// The keyboard: every operation by which a page changes something is done by keys alone in a test, which has no mouse.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keyboardDeeds } from '../support/keyboard-deeds.ts'
import { lineAt, parse, readSources, type SourceFile, type SyntaxNode, walk } from './source.ts'

const changing = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

/** `api.POST('/v1/keys/{keyId}/rotate', …)` and, on the desk, `ask(`/queues/${key}/pause`, { method: 'POST' })`. */
function changesOf(file: SourceFile): string[] {
  const found: string[] = []
  walk(parse(file).program, (node) => {
    if (node.type !== 'CallExpression') return
    const [path, options] = node['arguments'] as SyntaxNode[]
    const callee = node['callee'] as SyntaxNode
    const method = methodOf(callee, options)
    if (!method) return
    const prefix = callee.type === 'Identifier' ? '/desk/v1' : '/app'
    found.push(`${method} ${prefix}${pathOf(path, `${file.path}:${lineAt(file.text, node.start)}`)}`)
  })
  return found
}

function methodOf(callee: SyntaxNode, options: SyntaxNode | undefined): string | null {
  const { name } = ((callee['object'] as SyntaxNode | undefined) ?? callee) as { name?: unknown }
  if (callee.type === 'MemberExpression' && name === 'api') {
    const called = String((callee['property'] as SyntaxNode)['name'])
    return changing.has(called) ? called : null
  }
  if (callee.type !== 'Identifier' || name !== 'ask') return null
  for (const property of (options?.['properties'] as SyntaxNode[] | undefined) ?? [])
    if ((property['key'] as SyntaxNode | undefined)?.['name'] === 'method')
      return String((property['value'] as SyntaxNode)['value'])
  return null
}

function pathOf(path: SyntaxNode | undefined, at: string): string {
  if (typeof path?.['value'] === 'string') return path['value'].replaceAll(/\{\w+\}/g, '{}')
  assert.equal(path?.type, 'TemplateLiteral', `${at}: write the path where it is called`)
  const parts = path!['quasis'] as { value: { cooked: string } }[]
  return parts.map(({ value }) => value.cooked).join('{}')
}

test('fences: every change that a page makes is made by keys alone in a test', () => {
  const sources = readSources('dashboard/src/**/*.{ts,tsx}').filter(({ path }) => !path.endsWith('.gen.ts'))
  const made = new Set(sources.flatMap(changesOf))
  const declared = Object.values(keyboardDeeds).flat()
  assert.deepEqual(
    [...made].sort(),
    declared.toSorted(),
    'do it in tests/browser/keyboard-….test.ts, and say so in tests/support/keyboard-deeds.ts',
  )
})

test('fences: no page calls the service past the client that the other fence reads', () => {
  const past = readSources('dashboard/src/**/*.{ts,tsx}').filter(({ text }) =>
    /\b(?:XMLHttpRequest|sendBeacon)\b|\bfetch\([^)]*\bmethod\b/s.test(text.replace(/`[^`]*`/g, '``')),
  )
  assert.deepEqual(
    past.map(({ path }) => path),
    ['dashboard/src/desk/client.ts'],
  )
})

test('fences: the tests of the keyboard have no page that could be clicked', () => {
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
