// The sentences of comments and docs, as the fence over prose counts them.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { lineAt, parse, readSources, root } from './source.ts'

export interface Sentence {
  /** `src/mail/address.ts:12`, where the comment or the paragraph begins. */
  at: string
  text: string
}

/** Comments of product, dashboard, bench, scripts and tests, SQL included. Migrations stay as they were. */
export function readComments(): Sentence[] {
  const folders = ['src', 'dashboard/src', 'bench', 'scripts', 'tests']
  const files = readSources(...folders.map((folder) => `${folder}/**/*.{ts,tsx}`))
  const code = files
    .filter(({ path }) => !path.endsWith('.gen.ts'))
    .flatMap((file) => {
      const comments = parse(file).comments.filter(({ value }) => !/^\s*biome-ignore/.test(value))
      const blocks: (Sentence & { end: number })[] = []
      for (const { type, value, start, end } of comments) {
        const last = blocks.at(-1)
        const text = value.replaceAll(/^\s*\*+ ?/gm, '').trim()
        // Line comments that follow each other are one text.
        if (type === 'Line' && last && /^\n[ \t]*$/.test(file.text.slice(last.end, start)))
          Object.assign(last, { text: `${last.text} ${text}`, end })
        else blocks.push({ at: `${file.path}:${lineAt(file.text, start)}`, text, end })
      }
      return blocks
    })
  return [...code, ...readSqlComments()].flatMap(sentencesOf)
}

function readSqlComments(): Sentence[] {
  const blocks: Sentence[] = []
  for (const path of globSync('src/store/functions/*.sql', { cwd: root }).sort()) {
    let isOpen = false
    for (const [index, line] of readFileSync(join(root, path), 'utf8').split('\n').entries()) {
      const text = /^\s*-- ?(.*)$/.exec(line)?.[1]
      const last = blocks.at(-1)
      if (text !== undefined && isOpen && last) last.text += ` ${text}`
      else if (text !== undefined) blocks.push({ at: `${path}:${index + 1}`, text })
      isOpen = text !== undefined
    }
  }
  return blocks
}

/** Paragraphs and list items of the docs. Headings, code, tables and quotations are no sentences. */
export function readDocs(): Sentence[] {
  const paths = globSync(['*.md', '{bench,decisions,deploy,docs}/**/*.md'], { cwd: root }).sort()
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
