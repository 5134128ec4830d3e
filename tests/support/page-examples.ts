// The examples of a page: blocks marked `example`, in groups of curl, TypeScript and Python that do the same.
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')

/** In the order in which a page has them. */
export const languages = ['sh', 'ts', 'python'] as const
export type Language = (typeof languages)[number]

interface Block {
  /** Line of its opening fence. */
  line: number
  language: string
  /** `example`; or `before`, a command that has to run before the next group, in each language; or nothing. */
  mark: string
  text: string
  /** Whether only empty lines separate it from the block above. */
  isConsecutive: boolean
}

export interface Group {
  line: number
  programs: Record<Language, string>
  /** Shell commands that run before it, such as a mail that another server sends. */
  before: string[]
  /** The last JSON answer of the service, as the page shows it; undefined if it shows none. */
  answer: unknown
}

export interface Page {
  path: string
  text: string
  groups: Group[]
  /** Blocks without a mark. */
  unmarked: Block[]
  /** Sentences about groups that are incomplete. */
  mistakes: string[]
}

export function readPages(): Page[] {
  return globSync('docs/**/*.md', { cwd: root }).sort().map(readPage)
}

function readPage(path: string): Page {
  const text = readFileSync(join(root, path), 'utf8')
  const blocks = readBlocks(text)
  const page: Page = { path, text, groups: [], unmarked: [], mistakes: [] }
  let before: string[] = []
  for (let index = 0; index < blocks.length; ) {
    const block = blocks[index++]!
    if (block.mark === 'before') before.push(block.text)
    else if (block.mark === 'example') {
      const group = [block, ...blocks.slice(index, index + 2)]
      if (!isComplete(group)) {
        page.mistakes.push(`${path}:${block.line} is not followed by the same example in all of ${languages}`)
        continue
      }
      index += 2
      const [sh, ts, python] = group.map((one) => one.text) as [string, string, string]
      const next = blocks[index]
      const isShown = next?.language === 'json' && next.isConsecutive
      const answer = isShown ? JSON.parse(next.text) : undefined
      page.groups.push({ line: block.line, programs: { sh, ts, python }, before, answer })
      before = []
    } else page.unmarked.push(block)
  }
  if (before.length > 0) page.mistakes.push(`${path} ends with a block "before" no example`)
  return page
}

function readBlocks(text: string): Block[] {
  const blocks: Block[] = []
  let end = 0
  for (const { 0: all, 1: indent, 2: language, 3: mark, 4: body, index } of text.matchAll(
    /^([ \t]*)```(\w*)([^\n]*)\n([\s\S]*?)^[ \t]*```[ \t]*$/gm,
  )) {
    const line = text.slice(0, index).split('\n').length
    const isConsecutive = text.slice(end, index).trim() === ''
    const code = body!.replaceAll(new RegExp(`^${indent}`, 'gm'), '')
    blocks.push({ line, language: language!, mark: mark!.trim(), text: code, isConsecutive })
    end = index + all.length
  }
  return blocks
}

function isComplete(group: Block[]): boolean {
  return languages.every((language, index) => {
    const block = group[index]
    return block?.language === language && block.mark === 'example' && (index === 0 || block.isConsecutive)
  })
}
