// Limits src/ files to 400 lines, functions to 60 and 5 parameters, SQL functions to 80, and folders; reports the largest.
import assert from 'node:assert/strict'
import { dirname } from 'node:path'
import { test } from 'node:test'
import { lineAt, parse, readProduct, readSources, type SourceFile, type SyntaxNode, walk } from './source.ts'

const functionTypes = ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']

interface Sized {
  name: string
  lines: number
  /** Number of statements, including those of nested functions. */
  statements?: number
  parameters?: number
}

function functionsOf(file: SourceFile): Sized[] {
  const found: Sized[] = []
  walk(parse(file).program, (node, parent) => {
    if (!functionTypes.includes(node.type)) return
    const first = lineAt(file.text, node.start)
    const lines = lineAt(file.text, node.end) - first + 1
    const name = `${file.path}:${first} ${nameOf(node) ?? nameOf(parent) ?? ''}`.trim()
    const parameters = (node['params'] as SyntaxNode[]).length
    found.push({ name, lines, statements: statementsOf(node), parameters })
  })
  return found
}

function statementsOf(node: SyntaxNode): number {
  let count = 0
  walk(node['body'], ({ type }) => {
    if (type === 'VariableDeclaration' || (type.endsWith('Statement') && type !== 'BlockStatement')) count++
  })
  return count
}

function nameOf(node: SyntaxNode | null): string | undefined {
  const named = (node?.['id'] ?? node?.['key']) as { name?: string } | undefined
  return named?.name
}

/** Each file contains one SQL function. */
const sqlFunctions = readSources('src/store/functions/*.sql').map(({ path, lineCount }) => ({
  name: path,
  lines: lineCount,
}))

const largestFirst = (a: Sized, b: Sized) => b.lines - a.lines
const files = readSources('src/**/*.ts')
  .map(({ path, lineCount }) => ({ name: path, lines: lineCount }))
  .sort(largestFirst)
const functions = readProduct().flatMap(functionsOf).sort(largestFirst)

test('fences: at most one function in ten is over 40 lines', (t) => {
  const over = (limit: number) => functions.filter(({ lines }) => lines > limit).length
  t.diagnostic(
    `${files.length} files, ${functions.length} functions: ${over(20)} over 20 lines, ${over(40)} over 40`,
  )
  for (const { name, lines } of functions.slice(0, 10))
    t.diagnostic(`function ${String(lines).padStart(4)} ${name}`)
  const byStatements = functions.toSorted((a, b) => b.statements! - a.statements!)
  for (const { name, statements } of byStatements.slice(0, 10))
    t.diagnostic(`statements ${String(statements).padStart(2)} ${name}`)
  for (const { name, lines } of files.slice(0, 10))
    t.diagnostic(`file     ${String(lines).padStart(4)} ${name}`)
  for (const { name, lines } of sqlFunctions.toSorted(largestFirst).slice(0, 5))
    t.diagnostic(`SQL      ${String(lines).padStart(4)} ${name}`)
  assert.ok(over(40) <= functions.length / 10, 'at most one function in ten is over 40 lines')
})

test('fences: functions in src/ have at most 60 lines, SQL functions 80, and files 400', () => {
  const over = (sized: Sized[], limit: number) => sized.filter(({ lines }) => lines > limit)
  assert.deepEqual([...over(functions, 60), ...over(sqlFunctions, 80), ...over(files, 400)], [])
})

test('fences: no function has more than five parameters', () => {
  assert.deepEqual(
    functions.filter(({ parameters }) => parameters! > 5),
    [],
  )
})

test('fences: no folder of src/ or the dashboard has more than 32 files besides tests', () => {
  const sources = readSources('src/**/*.ts', 'dashboard/src/**/*.{ts,tsx}')
  const product = sources.filter(({ path }) => !path.includes('.test.'))
  const folders = Map.groupBy(product, ({ path }) => dirname(path))
  const crowded = [...folders].filter(([, files]) => files.length > 32)
  assert.deepEqual(
    crowded.map(([folder, files]) => `${folder} ${files.length}`),
    [],
  )
})

test('fences: no class has more than 12 private fields', () => {
  const wrong = readProduct().flatMap((file) => {
    const found: string[] = []
    walk(parse(file).program, (node) => {
      if (node.type !== 'ClassBody') return
      const fields = (node['body'] as SyntaxNode[]).filter(
        ({ type, key }) => type === 'PropertyDefinition' && (key as SyntaxNode).type === 'PrivateIdentifier',
      )
      if (fields.length > 12) found.push(`${file.path}:${lineAt(file.text, node.start)} ${fields.length}`)
    })
    return found
  })
  assert.deepEqual(wrong, [])
})

test('fences: no statement has more than eight positional parameters, since more go by name', () => {
  const found = readProduct().filter(({ text }) => /\$(9|[1-9]\d)\b/.test(text))
  assert.deepEqual(
    found.map(({ path }) => path),
    [],
  )
})
