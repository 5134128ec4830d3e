// Compares our reader's text of HTML mail with Chromium's visible text, word by word, over every published mail.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Browser, chromium, type Page } from 'playwright-core'
import { readHtmlText } from '../../src/mail/read/html-text.ts'
import { parseMail } from '../../src/mail/read/parse.ts'
import { chromiumMissing, chromiumPath } from '../support/chromium.ts'
import { readCorpora } from '../support/corpora.ts'
import { decodeSpan } from '../support/decode-span.ts'

const root = resolve(import.meta.dirname, '../..', process.env['POSTHORN_TESTDATA'] ?? '../shared/testdata')
const mostDiffering = 0.01
const worstShown = 10
const pages = publishedPages()
const skip =
  chromiumMissing ?? (pages.size === 0 ? 'the published suites are absent (POSTHORN_TESTDATA)' : false)

interface Difference {
  name: string
  words: number
  differing: number
  lacking: string[]
  added: string[]
}

test('the text of published HTML mails equals Chromium’s, up to one word in a hundred', {
  skip,
}, async (t) => {
  const browser = await chromium.launch({ executablePath: chromiumPath!, args: ['--no-sandbox'] })
  t.after(() => browser.close())
  const page = await openMailPage(browser)
  const differences: Difference[] = []
  for (const [html, name] of pages) differences.push(compare(name, html, await page.read(html)))
  const { words, differing } = report(t, differences)
  assert.ok(words > 0)
  assert.ok(differing / words <= mostDiffering, `${differing} of ${words} words differ`)
})

/** HTML of every mail, also attached, and of newsletters stored as pages. Each occurs once, with its name. */
function publishedPages(): Map<string, string> {
  const found = new Map<string, string>()
  const add = (raw: Uint8Array, name: string) => {
    const { html, attachments } = parseMail(raw)
    if (html !== null && !found.has(html)) found.set(html, name)
    for (const { contentType, span } of attachments)
      if (contentType === 'message/rfc822') add(decodeSpan(Buffer.from(raw), span), `${name}, attached`)
  }
  for (const { name, raw } of [...readCorpora().values()].flat()) add(raw, name)
  for (const name of globSync('newsletters/**/*.html', { cwd: root }).sort())
    found.set(readFileSync(join(root, name), 'utf8'), name)
  return found
}

/**
 * A window of 1024 by 768 pixels without network and scripts. `read` returns its visible text: `innerText`, without text
 * that is hidden by color, size or position.
 */
async function openMailPage(browser: Browser): Promise<{ read(html: string): Promise<string> }> {
  const context = await browser.newContext({ viewport: { width: 1024, height: 768 } })
  const page: Page = await context.newPage()
  let body = ''
  const headers = { 'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'" }
  await page.route('**/*', async (route) => {
    if (route.request().url() !== 'http://mail.test/') return await route.abort()
    await route.fulfill({ body, contentType: 'text/html; charset=utf-8', headers })
  })
  return {
    async read(html) {
      // Without the refresh, so that a page that loads another page is read itself.
      body = html.replace(/http-equiv=["']?refresh/gi, 'data-refresh')
      await page.goto('http://mail.test/', { waitUntil: 'domcontentloaded' })
      return await page.evaluate<string>(removeUnseen)
    },
  }
}

/** Evaluated in the page. */
const removeUnseen = `(() => {
  const hides = (element) => {
    const { opacity, fontSize, color, textIndent } = getComputedStyle(element)
    return Number(opacity) < 0.05 || parseFloat(fontSize) < 2 || /^rgba.*, 0\\)$/.test(color) || parseFloat(textIndent) < -998
  }
  const walker = document.createTreeWalker(document.body ?? document, NodeFilter.SHOW_TEXT)
  const unseen = []
  while (walker.nextNode()) if (hides(walker.currentNode.parentElement)) unseen.push(walker.currentNode)
  for (const node of unseen) node.data = ''
  return (document.body ?? document.documentElement).innerText ?? ''
})()`

function compare(name: string, html: string, shown: string): Difference {
  const ours = countWords(readHtmlText(html).text.replace(/^-{8}$/gm, ''))
  const theirs = countWords(shown)
  const lacking = missingIn(ours, theirs)
  const added = missingIn(theirs, ours)
  const words = [...theirs.values()].reduce((sum, count) => sum + count, 0)
  return { name, words, differing: lacking.length + added.length, lacking, added }
}

/** Counts each word of the text, without the links in brackets that our reader adds. */
function countWords(text: string): Map<string, number> {
  const counts = new Map<string, number>()
  const words = text
    .replace(/\[(?:https?:|mailto:)[^\]\n]*\]/gi, ' ')
    .normalize('NFKC')
    .toLowerCase()
  for (const word of words.match(/[\p{L}\p{N}]+/gu) ?? []) counts.set(word, (counts.get(word) ?? 0) + 1)
  return counts
}

function missingIn(some: Map<string, number>, all: Map<string, number>): string[] {
  return [...all].flatMap(([word, count]) =>
    Array<string>(Math.max(0, count - (some.get(word) ?? 0))).fill(word),
  )
}

function report(t: TestContext, differences: Difference[]): { words: number; differing: number } {
  const sum = (of: (difference: Difference) => number) => differences.reduce((all, one) => all + of(one), 0)
  const [words, differing] = [sum((one) => one.words), sum((one) => one.differing)]
  const equal = differences.filter((one) => one.differing === 0).length
  const percent = ((100 * differing) / words).toFixed(2)
  t.diagnostic(
    `${differences.length} pages, ${equal} the same; ${words} words, ${differing} differ: ${percent} %`,
  )
  const worst = differences
    .filter((one) => one.differing > 0)
    .sort((one, other) => other.differing - one.differing)
  for (const { name, words: all, lacking, added } of worst.slice(0, worstShown)) {
    const list = (of: string[]) => of.slice(0, 12).join(' ') || '-'
    t.diagnostic(`${name}: ${all} words; we lack: ${list(lacking)}; we add: ${list(added)}`)
  }
  return { words, differing }
}
