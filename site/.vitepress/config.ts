// Builds the guide: the Markdown files of the repository as static pages, served by Posthorn at /guide.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitepress'
import { flatCode, syntaxTheme } from '../build/code.ts'
import { headingId, withoutEmptyHeaders } from '../build/markdown.ts'
import { addressOf, type Group, groupPages, records, titleOf } from '../build/navigation.ts'
import { copyPages, pagesFolder } from '../build/pages.ts'
import { searchDialog } from '../build/search-dialog.ts'
import { earlyScript, strictPage } from '../build/strict-page.ts'
import { writeTexts } from '../build/texts.ts'

const base = '/guide/'
const groups = groupPages(copyPages())

export default defineConfig({
  lang: 'en',
  title: 'Posthorn',
  description: 'The guide of Posthorn, a self-hosted mail service for programs and agents.',
  base,
  srcDir: pagesFolder,
  outDir: join(import.meta.dirname, '../dist'),
  cacheDir: join(import.meta.dirname, '../../node_modules/.cache/vitepress'),
  cleanUrls: true,
  additionalConfig: {},
  // The dashboard stores the reader's choice under the same key. A transition would need an inline style.
  appearance: { storageKey: 'posthorn.theme', disableTransition: false },
  router: { prefetchLinks: false },
  markdown: {
    theme: syntaxTheme,
    codeTransformers: [flatCode],
    anchor: { slugify: headingId },
    config: withoutEmptyHeaders,
  },
  themeConfig: {
    siteTitle: 'Posthorn guide',
    nav: ['Agents', 'Applications', 'Operators'].map(navigationLink),
    sidebar: groups.filter(({ title }) => title !== records).map(sidebarGroup),
    outline: { level: [2, 3], label: 'On this page' },
    search: { provider: 'local' },
    externalLinkIcon: false,
  },
  // Files inlined as data: would need a wider content security policy.
  vite: { build: { assetsInlineLimit: 0, chunkSizeWarningLimit: 2_000 }, plugins: [searchDialog()] },
  transformHtml: (html) => strictPage(html, base),
  buildEnd({ outDir }) {
    writeFileSync(join(outDir, earlyScript.name), earlyScript.source)
    writeTexts(outDir, base, groups)
  },
})

function navigationLink(title: string) {
  const { pages } = groups.find((group) => group.title === title)!
  return { text: title, link: addressOf(pages[0]!) }
}

function sidebarGroup({ title, pages }: Group) {
  return {
    text: title,
    items: pages.map((page) => ({ text: titleOf(page), link: addressOf(page) })),
  }
}
