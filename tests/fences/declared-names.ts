// The names that TypeScript and the functions of the database declare, as the fence over names reads them.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isNode, lineAt, parse, root, type SourceFile, type SyntaxNode, walk } from './source.ts'

export interface DeclaredName {
  name: string
  /** `src/mail/address.ts:12`. */
  at: string
}

/** Returns the names a file declares: functions, classes, types, variables, parameters and members, private ones too. */
export function declaredNames(file: SourceFile): DeclaredName[] {
  const found: DeclaredName[] = []
  const add = (node: unknown) => {
    if (!isNode(node)) return
    const { name } = node
    if (typeof name === 'string') found.push({ name, at: `${file.path}:${lineAt(file.text, node.start)}` })
    else for (const bound of boundBy(node)) add(bound)
  }
  walk(parse(file).program, (node) => {
    if (/^(Function|Class|VariableDeclarator|TSInterface|TSTypeAlias|TSEnum)/.test(node.type)) add(node['id'])
    if (
      /^(MethodDefinition|PropertyDefinition|AccessorProperty|TSPropertySignature|TSMethodSignature)$/.test(
        node.type,
      )
    )
      add(node['key'])
    if (node.type === 'CatchClause') add(node['param'])
    for (const parameter of (node['params'] as unknown[] | undefined) ?? []) add(parameter)
  })
  return found
}

/** The fields of a pattern that hold what it binds: `{ a: b }`, `[b]`, `b = 1`, `...b`. Keys are the object's names. */
const boundFields: Record<string, string> = {
  ObjectPattern: 'properties',
  ArrayPattern: 'elements',
  Property: 'value',
  AssignmentPattern: 'left',
  RestElement: 'argument',
}

function boundBy(pattern: SyntaxNode): unknown[] {
  return [pattern[boundFields[pattern.type] ?? '']].flat()
}

/** Returns the names in the functions of the database. Migrations are not read: they cannot change. */
export function readFunctionNames(): DeclaredName[] {
  return globSync('src/store/functions/*.sql', { cwd: root })
    .sort()
    .flatMap((path) => {
      const text = readFileSync(join(root, path), 'utf8')
      return sqlNames(text).map(({ name, start }) => ({ name, at: `${path}:${lineAt(text, start)}` }))
    })
}

/** A comment, a string, a name in double quotes, or a word. Bodies between `$$` are read as code. */
const sqlToken = /--.*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"([^"]+)"|\b([a-z_]\w*)/gi

/**
 * Returns each name in SQL, where it comes first: functions, parameters, variables, named queries, aliases, and the columns
 * and tables they read. Keywords count as names too, so that no grammar is needed.
 */
export function sqlNames(text: string): { name: string; start: number }[] {
  const found = new Map<string, number>()
  for (const { 1: quoted, 2: word, index } of text.matchAll(sqlToken)) {
    const name = quoted ?? word?.toLowerCase()
    if (name && !found.has(name)) found.set(name, index)
  }
  return [...found].map(([name, start]) => ({ name, start }))
}
