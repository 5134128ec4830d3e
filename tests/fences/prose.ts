// The sentences of comments, docs and test names, as the fence over prose counts them.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isNode, lineAt, parse, readSources, root, walk } from './source.ts'

export interface Sentence {
  /** `src/mail/address.ts:12`, where the comment or the paragraph begins. */
  at: string
  text: string
}

/** Comments of code, SQL, styles and scripts. Migrations stay as they were. */
export function readComments(): Sentence[] {
  const blocks = [...readCode(), ...readStyles(), ...readLines('--', sql), ...readLines('#', scripts)]
  return blocks.flatMap(splitItems).flatMap(sentencesOf)
}

/** Splits a comment at its list items. */
function splitItems({ at, text }: Sentence): Sentence[] {
  return text.split(/\n *- /).map((item) => ({ at, text: item }))
}

const code = [
  '{src,bench,scripts,tests,sdk/typescript/src}/**/*.{ts,js,cjs}',
  'dashboard/{*,{build,src}/**/*}.{ts,tsx,js}',
  'site/{build,src,.vitepress/theme}/**/*.{ts,js}',
  'site/.vitepress/config.ts',
]
const sql = ['src/store/functions/*.sql']
const scripts = [
  '{tests,bench}/**/*.{py,pl,sh}',
  'sdk/python/{*,tests/*,src/posthorn/{_*,errors,webhooks,_io/*,_async/*}}.py',
  'bin/*',
  '.ci/run',
  'deploy/{Dockerfile,**/*.*,caddy/Caddyfile}',
]

function readCode(): Sentence[] {
  const files = readSources(...code)
  return files.flatMap((file) => {
    const comments = parse(file).comments.filter(({ value }) => !/^\s*biome-ignore/.test(value))
    const blocks: (Sentence & { end: number })[] = []
    for (const { type, value, start, end } of comments) {
      const last = blocks.at(-1)
      const text = value.replaceAll(/^\s*\*+ ?/gm, '').trim()
      // Line comments that follow each other are one text.
      if (type === 'Line' && last && /^\n[ \t]*$/.test(file.text.slice(last.end, start)))
        Object.assign(last, { text: `${last.text}\n${text}`, end })
      else blocks.push({ at: `${file.path}:${lineAt(file.text, start)}`, text, end })
    }
    return blocks
  })
}

function readStyles(): Sentence[] {
  return readSources('{dashboard,site}/src/**/*.css').flatMap(({ path, text }) =>
    [...text.matchAll(/\/\*(.*?)\*\//gs)].map(({ index, 1: comment }) => ({
      at: `${path}:${lineAt(text, index)}`,
      text: comment!.trim(),
    })),
  )
}

/** Comments that take whole lines, each of which begins with `mark` and a space. */
function readLines(mark: string, patterns: string[]): Sentence[] {
  const comment = new RegExp(`^\\s*${mark}(?: (.*))?$`)
  const blocks: Sentence[] = []
  for (const { path, text } of readSources(...patterns).filter((file) => !/\.(?:md|json)$/.test(file.path))) {
    let isOpen = false
    for (const [index, line] of text.split('\n').entries()) {
      const found = comment.exec(line)
      const last = blocks.at(-1)
      if (found && isOpen && last) last.text += `\n${found[1] ?? ''}`
      else if (found) blocks.push({ at: `${path}:${index + 1}`, text: found[1] ?? '' })
      isOpen = found !== null
    }
  }
  return blocks
}

/** Paragraphs and list items of the docs. Headings, code, tables and quotations are no sentences. */
export function readDocs(): Sentence[] {
  const paths = globSync(['*.md', '{bench,decisions,deploy,docs,sdk}/**/*.md'], { cwd: root }).sort()
  return paths.flatMap((path) => {
    const text = readFileSync(join(root, path), 'utf8').replaceAll(/^```.*?^```/gms, (code) =>
      code.replaceAll(/[^\n]/g, ''),
    )
    const blocks: Sentence[] = []
    let isOpen = false
    for (const [index, line] of text.split('\n').entries()) {
      const isProse = !/^\s*(?:$|#|\||>|<|!\[|\[[^\]]+\]:)/.test(line)
      const item = /^\s*(?:[-*]|\d+\.) (.*)$/.exec(line)?.[1]
      const last = blocks.at(-1)
      if (isProse && isOpen && item === undefined && last) last.text += ` ${line.trim()}`
      else if (isProse) blocks.push({ at: `${path}:${index + 1}`, text: item ?? line.trim() })
      isOpen = isProse
    }
    return blocks.flatMap(sentencesOf)
  })
}

/** Names of tests, subtests and suites that are written where they are called. Values within templates become `…`. */
export function readTestNames(): Sentence[] {
  return readSources('{src,tests,bench}/**/*.test.ts').flatMap((file) => {
    const names: Sentence[] = []
    walk(parse(file).program, ({ type, callee, arguments: given }) => {
      if (type !== 'CallExpression' || !isNode(callee) || !Array.isArray(given)) return
      const called = callee.type === 'MemberExpression' ? callee['property'] : callee
      if (!isNode(called) || !/^(?:test|it|describe|suite)$/.test(String(called['name']))) return
      const text = textOf(given[0])
      if (text !== null) names.push({ at: `${file.path}:${lineAt(file.text, callee.start)}`, text })
    })
    return names
  })
}

/** Returns the text of a string or a template, or null for any other expression. */
function textOf(node: unknown): string | null {
  if (!isNode(node)) return null
  if (node.type === 'Literal') return typeof node['value'] === 'string' ? node['value'] : null
  if (node.type !== 'TemplateLiteral') return null
  return (node['quasis'] as { value: { cooked: string } }[]).map(({ value }) => value.cooked).join('…')
}

/** Tags at the start of a comment: `RFC 5321 4.5.3:`, `QUIRK:`, `Security:`. */
const tag = /^(?:(?:RFC \d+ [\w.]+(?:,? (?:and )?[\w.]+)*|[A-Z][A-Za-z]+): )+/

/** The sentences of a whole comment or paragraph. */
function sentencesOf({ at, text }: Sentence): Sentence[] {
  return text
    .replaceAll(/\s+/g, ' ')
    .replace(tag, '')
    .split(/(?<=[.!?]["')*]*) (?=[A-Z0-9`"'(*[])/)
    .filter((sentence) => /\w/.test(sentence))
    .map((sentence) => ({ at, text: sentence.trim() }))
}
