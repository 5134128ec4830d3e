// The order of the pages, by who reads them: the navigation of the site and of llms.txt.
import { matchesGlob } from 'node:path'
import type { SitePage } from './pages.ts'

export interface Group {
  title: string
  pages: SitePage[]
}

/** Pages about the past: listed by a page of their own, and not in the navigation. */
export const records = 'Decisions'
const others = 'Inside'

/** Paths or patterns, in order. A page belongs to the first group that names it, otherwise to `others`. */
const groups: Record<string, readonly string[]> = {
  Start: ['index.md', 'about.md', 'quickstart*.md'],
  Agents: ['agents.md', 'mcp*.md', 'trust.md', 'reading.md', 'search.md'],
  Applications: [
    ...['applications.md', 'api.md', 'sdk/index.md', 'sdk/typescript/index.md', 'sdk/python/index.md'],
    ...['command-line.md', 'webhooks.md', 'bounces.md', 'domains.md', 'submission.md', 'dashboard.md'],
  ],
  'Coming from': ['coming-from/index.md', 'coming-from/*.md'],
  Operators: [
    ...['production.md', 'settings.md', 'operating.md', 'observing.md', 'security.md', 'two-machines.md'],
    ...['failover.md', 'kubernetes.md', 'deploy/helm/posthorn/index.md', 'deploy/index.md'],
  ],
  Inside: [
    ...['message-life.md', 'architecture.md', 'internals/*.md', 'indexes.md', 'reliability.md'],
    ...['decisions/index.md', 'contributing.md', 'security-policy.md', 'changelog.md'],
  ],
  [records]: ['decisions/*.md'],
}

/** Titles that say too little in a list. */
const titles: Readonly<Record<string, string>> = {
  'about.md': 'About Posthorn',
  'sdk/typescript/index.md': 'Posthorn for TypeScript',
}

export function titleOf({ path, title }: SitePage): string {
  return titles[path] ?? title
}

/** Distributes the pages over the groups. A group without pages is left out. */
export function groupPages(pages: readonly SitePage[]): Group[] {
  const left = new Set(pages)
  const take = (pattern: string) => {
    const found = pages.filter((page) => left.has(page) && matchesGlob(page.path, pattern))
    for (const page of found) left.delete(page)
    return found
  }
  const filled = Object.entries(groups).map(([title, patterns]) => ({ title, pages: patterns.flatMap(take) }))
  filled.find(({ title }) => title === others)!.pages.push(...left)
  return filled.filter((group) => group.pages.length > 0)
}

/** The address of a page on the site, without the site's own path: `/internals/api`, `/sdk/`. */
export function addressOf({ path }: SitePage): string {
  return `/${path.replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, '')}`
}
