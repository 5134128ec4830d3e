// The source tree as the fences see it: files, their rooms, their syntax trees.
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type ParseResult, parseSync } from 'oxc-parser'

export const root = resolve(import.meta.dirname, '../..')

export interface SourceFile {
  /** Path from the root, as `src/mail/address.ts`. */
  path: string
  text: string
  lineCount: number
}

export interface SyntaxNode {
  type: string
  start: number
  end: number
  [field: string]: unknown
}

/** Every TypeScript file that the patterns match, by path. */
export function readSources(...patterns: string[]): SourceFile[] {
  const paths = globSync(patterns, { cwd: root, exclude: (path) => path.includes('node_modules') })
  return paths.sort().map((path) => {
    const text = readFileSync(join(root, path), 'utf8')
    return { path, text, lineCount: text.trimEnd().split('\n').length }
  })
}

/** Product code: what is under src and is not a test. */
export function readProduct(): SourceFile[] {
  return readSources('src/**/*.ts').filter(({ path }) => !path.endsWith('.test.ts'))
}

export function parse(file: SourceFile): ParseResult {
  const result = parseSync(file.path, file.text)
  if (result.errors.length > 0) throw new Error(`${file.path}: ${result.errors[0]!.message}`)
  return result
}

/** Calls `visit` for every node below and including `node`, with the node it hangs from. */
export function walk(
  node: unknown,
  visit: (node: SyntaxNode, parent: SyntaxNode | null) => void,
  parent: SyntaxNode | null = null,
): void {
  if (Array.isArray(node)) {
    for (const item of node) walk(item, visit, parent)
  } else if (isNode(node)) {
    visit(node, parent)
    for (const value of Object.values(node)) if (typeof value === 'object') walk(value, visit, node)
  }
}

export function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && typeof (value as SyntaxNode).type === 'string'
}

/** The line, from 1, that an offset is on. */
export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length
}
