// The source tree for the fences: files, their rooms and their syntax trees.
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

/** Returns every file that matches the patterns and is written by hand, sorted by path. */
export function readSources(...patterns: string[]): SourceFile[] {
  const paths = globSync(patterns, { cwd: root, exclude: (path) => /node_modules|\.gen\.ts$/.test(path) })
  return paths.sort().map((path) => {
    const text = readFileSync(join(root, path), 'utf8')
    return { path, text, lineCount: text.trimEnd().split('\n').length }
  })
}

/** Returns product code: files in src that are not tests. */
export function readProduct(): SourceFile[] {
  return readSources('src/**/*.ts').filter(({ path }) => !path.endsWith('.test.ts'))
}

export function parse(file: SourceFile): ParseResult {
  const result = parseSync(file.path, file.text)
  if (result.errors.length > 0) throw new Error(`${file.path}: ${result.errors[0]!.message}`)
  return result
}

/** Calls `visit` for `node` and every node below it, with the parent node. */
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

/** Returns the line of an offset, counted from 1. */
export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length
}
