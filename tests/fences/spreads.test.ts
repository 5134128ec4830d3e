// Forbids spreading an object literal inside another object literal, because its members can be written directly.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lineAt, parse, readSources, type SyntaxNode, walk } from './source.ts'

test('fences: no object literal is spread into another', () => {
  const files = readSources(
    '{src,tests,bench,scripts,sdk/typescript/src}/**/*.ts',
    'dashboard/{src,build}/**/*.{ts,tsx}',
    'site/{build,.vitepress}/**/*.ts',
  )
  const wrong = files.flatMap((file) => {
    const lines: string[] = []
    walk(parse(file).program, ({ type, argument, start }) => {
      const isSpread = type === 'SpreadElement' || type === 'JSXSpreadAttribute'
      if (isSpread && (argument as SyntaxNode).type === 'ObjectExpression')
        lines.push(`${file.path}:${lineAt(file.text, start)}`)
    })
    return lines
  })
  assert.deepEqual(wrong, [], 'write the members themselves')
})
