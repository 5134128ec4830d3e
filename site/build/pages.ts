// Copies the Markdown files of the repository into the folder that VitePress builds, with links that hold on the site.
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')
export const pagesFolder = join(root, 'site/pages')

/** Files that the site publishes. A link to any other file of the repository becomes its text. */
export const published = [
  'docs/**/*.{md,svg}',
  'decisions/*.md',
  'deploy/{,helm/posthorn/}README.md',
  'sdk/{,python/,typescript/}README.md',
  '{ARCHITECTURE,CHANGELOG,CONTRIBUTING,README,SECURITY}.md',
]

export interface SitePage {
  /** Path on the site, such as `internals/api.md`. */
  path: string
  title: string
  /** The Markdown text, with links between pages of the site. */
  text: string
}

/** Writes the folder of VitePress anew, and returns its pages in the order of their paths. */
export function copyPages(): SitePage[] {
  rmSync(pagesFolder, { recursive: true, force: true })
  const sources = globSync(published, { cwd: root }).sort()
  const paths = new Map(sources.map((source) => [source, sitePath(source)]))
  const targets = new Map([...paths, ['decisions', 'decisions/index.md']])
  const pages: SitePage[] = []
  for (const [source, path] of paths) {
    const target = join(pagesFolder, path)
    mkdirSync(dirname(target), { recursive: true })
    if (!source.endsWith('.md')) {
      cpSync(join(root, source), target)
      continue
    }
    const text = relink(readFileSync(join(root, source), 'utf8'), source, targets)
    writeFileSync(target, text)
    pages.push({ path, title: /^# (.+)$/m.exec(text)?.[1]?.replaceAll('`', '') ?? path, text })
  }
  const records = pages.filter(({ path }) => path.startsWith('decisions/'))
  const index = { path: 'decisions/index.md', title: 'Decisions', text: listRecords(records) }
  writeFileSync(join(pagesFolder, index.path), index.text)
  return [...pages, index]
}

function listRecords(records: readonly SitePage[]): string {
  const entries = records.map(({ path, title }) => `- [${title}](./${posix.basename(path)})`)
  return ['# Decisions', '', 'Each page says what was decided and why.', '', ...entries, ''].join('\n')
}

/** Files whose names would collide with those of `docs/`. */
const renamed: Readonly<Record<string, string>> = {
  'README.md': 'about.md',
  'SECURITY.md': 'security-policy.md',
}

/** The pages of `docs/` are at the top of the site, and README.md is the index of its folder. */
function sitePath(source: string): string {
  const path = renamed[source] ?? source
  return path
    .toLowerCase()
    .replace(/^docs\//, '')
    .replace(/readme\.md$/, 'index.md')
}

const codeBlock = /^([ \t]*```[\s\S]*?^[ \t]*```[ \t]*$)/m
const link = /(!?)\[((?:[^[\]]|\[[^[\]]*\])*)\]\(([^()\s#]+)(#[^()\s]*)?\)/g

/** Rewrites the relative links outside code blocks. A link to a file that the site does not publish becomes its text. */
export function relink(text: string, source: string, paths: ReadonlyMap<string, string>): string {
  const from = posix.dirname(paths.get(source)!)
  const parts = text.split(codeBlock).map((part, index) => {
    if (index % 2 === 1) return part
    return part.replace(link, (whole, image: string, label: string, target: string, anchor = '') => {
      if (/^[a-z]+:/.test(target)) return whole
      const path = findTarget(posix.join(posix.dirname(source), target), paths)
      return path ? `${image}[${label}](${relativePath(from, path)}${anchor})` : label
    })
  })
  return parts.join('')
}

/** A link to a folder leads to its index. */
function findTarget(path: string, paths: ReadonlyMap<string, string>): string | undefined {
  const file = path.replace(/\/$/, '')
  return paths.get(file) ?? paths.get(`${file}/README.md`)
}

function relativePath(from: string, to: string): string {
  const path = posix.relative(from, to)
  return path.startsWith('.') ? path : `./${path}`
}
