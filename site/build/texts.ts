// Writes the site as text: each page as Markdown, an index in llms.txt, and all pages in llms-full.txt.
import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Group, records, titleOf } from './navigation.ts'
import { pagesFolder, type SitePage } from './pages.ts'

/** Adds the texts to the built site in `folder`. `base` is the path that the site is served at: `/guide/`. */
export function writeTexts(folder: string, base: string, groups: readonly Group[]): void {
  cpSync(pagesFolder, folder, { recursive: true })
  const index = groups.flatMap(({ title, pages }) => [
    '',
    `## ${title}`,
    '',
    ...pages.map((page) => entry(base, page)),
  ])
  const head = [
    ...[
      '# Posthorn',
      '',
      '> A self-hosted mail service for programs and agents: inboxes, sending, receiving, threads.',
    ],
    ...['', `All of these pages in one file, without the decisions: ${base}llms-full.txt`],
    ...['', 'The API of a running service is described at /openapi.json.'],
  ]
  const full = groups.filter(({ title }) => title !== records).flatMap(({ pages }) => pages)
  const texts = full.map(({ path, text }) => `<!-- ${base}${path} -->\n\n${text.trim()}\n`)
  writeFileSync(join(folder, 'llms-full.txt'), texts.join('\n'))
  // The last file: the server takes the build for complete once it exists.
  writeFileSync(join(folder, 'llms.txt'), `${[...head, ...index].join('\n')}\n`)
}

function entry(base: string, page: SitePage): string {
  const summary = firstSentence(page.text)
  return `- [${titleOf(page)}](${base}${page.path})${summary && `: ${summary}`}`
}

/** The first sentence below the title, without links. Empty if the page does not begin with a paragraph. */
function firstSentence(text: string): string {
  const [, paragraph = ''] = /^# .+\n+([A-Za-z`*[][^\n]*(?:\n[^\n]+)*)/m.exec(text) ?? []
  const plain = paragraph.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/\s+/g, ' ')
  return /^.*?\.(?= |$)/.exec(plain)?.[0] ?? ''
}
