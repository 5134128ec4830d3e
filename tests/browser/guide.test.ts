// The guide in a real browser: no axe finding in either theme, a search that finds pages, and nothing from other hosts.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { before, type TestContext, test } from 'node:test'
import { chromium, type Page } from 'playwright-core'
import { guideFolder } from '../../src/http/document/guide.ts'
import { chromiumMissing, chromiumPath } from '../support/chromium.ts'
import { violationsOf } from '../support/dashboard.ts'
import { buildGuide, createGuideApi } from '../support/guide.ts'

const skip = chromiumMissing ?? false
const root = resolve(import.meta.dirname, '../..')
const axe = readFileSync(join(root, 'node_modules/axe-core/axe.min.js'), 'utf8')

before(() => {
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`)
  buildGuide()
})

interface Window {
  page: Page
  /** Errors of the console, which include violations of the policy, exceptions, and requests to other hosts. */
  complaints: string[]
}

async function openGuide(t: TestContext, widthPx = 1280): Promise<Window> {
  const api = createGuideApi()
  const baseURL = await api.listen({ host: '127.0.0.1', port: 0 })
  const browser = await chromium.launch({ executablePath: chromiumPath!, args: ['--no-sandbox'] })
  t.after(async () => {
    await browser.close()
    await api.close()
  })
  const viewport = { width: widthPx, height: 900 }
  const page = await browser.newPage({ viewport, baseURL, reducedMotion: 'reduce', colorScheme: 'light' })
  page.setDefaultTimeout(20_000)
  const complaints: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()))
      complaints.push(`${message.text()} ${message.location().url}`)
  })
  page.on('pageerror', (error) => void complaints.push(String(error)))
  page.on('request', (request) => {
    if (!request.url().startsWith(`${baseURL}/guide/`)) complaints.push(`request: ${request.url()}`)
  })
  return { page, complaints }
}

/** The findings of axe in both themes. */
async function audit(page: Page): Promise<string[]> {
  await page.evaluate(axe)
  const light = await violationsOf(page, 'light')
  await page.evaluate(`document.documentElement.classList.add('dark')`)
  const dark = await violationsOf(page, 'dark')
  await page.evaluate(`document.documentElement.classList.remove('dark')`)
  return [...light, ...dark.map((found) => `dark ${found}`)]
}

async function openPage(page: Page, path: string, title: string): Promise<void> {
  await page.goto(`/guide/${path}`)
  await page.getByRole('heading', { level: 1, name: title }).waitFor()
  // The search button appears once the script runs.
  await page.getByRole('button', { name: 'Search' }).first().waitFor()
}

for (const widthPx of [390, 1280])
  test(`a page for each kind of reader has no axe finding and fits a window ${widthPx} wide`, {
    skip,
  }, async (t) => {
    const { page, complaints } = await openGuide(t, widthPx)
    for (const [path, title] of [
      ['', 'Guide'],
      ['agents', 'Agents'],
      ['api', 'Using the API'],
      ['operating', 'Operating'],
      ['decisions/', 'Decisions'],
    ] as const) {
      await openPage(page, path, title)
      assert.deepEqual(await audit(page), [], path)
      assert.ok(
        await page.evaluate('document.documentElement.scrollWidth <= innerWidth'),
        `${path} is too wide`,
      )
    }
    assert.deepEqual(complaints, [])
  })

test('the search finds a page by a word of it, by keyboard alone, and has no axe finding', {
  skip,
}, async (t) => {
  const { page, complaints } = await openGuide(t)
  await openPage(page, '', 'Guide')
  await page.keyboard.press('Control+k')
  const dialog = page.getByRole('dialog', { name: 'Search' })
  await dialog.getByRole('combobox').fill('suppressions')
  const found = dialog.getByRole('option', { name: /Bounces, complaints and suppressions/ }).first()
  await found.waitFor()
  assert.deepEqual(await audit(page), [])
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Bounces, complaints and suppressions' }).waitFor()
  await dialog.waitFor({ state: 'detached' })
  assert.match(page.url(), /\/guide\/bounces/)
  assert.deepEqual(complaints, [])
})

test('links open pages without a reload, and the chosen theme is the dashboard’s', { skip }, async (t) => {
  const { page, complaints } = await openGuide(t)
  await openPage(page, '', 'Guide')
  await page.evaluate('globalThis.kept = true')
  await page
    .getByRole('navigation', { name: 'Main Navigation' })
    .getByRole('link', { name: 'Operators' })
    .click()
  await page.getByRole('heading', { level: 1, name: 'Production in ten minutes' }).waitFor()
  assert.ok(await page.evaluate('globalThis.kept'))
  await page.getByRole('switch').first().click()
  assert.equal(await page.evaluate(`localStorage.getItem('posthorn.theme')`), 'dark')
  await page.reload()
  const isDark = `document.documentElement.classList.contains('dark')`
  assert.ok(await page.evaluate(isDark))
  assert.deepEqual(complaints, [])
  await page.goto('/guide/nowhere')
  await page.getByRole('heading', { level: 1, name: 'Page not found' }).waitFor()
  assert.deepEqual(await audit(page), [])
})

test('the guide is built', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-guide-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const startMs = performance.now()
  const args = ['build', 'site', '--outDir', folder]
  execFileSync(join(root, 'node_modules/.bin/vitepress'), args, { cwd: root, stdio: 'pipe' })
  t.diagnostic(`built in ${((performance.now() - startMs) / 1000).toFixed(1)} s`)
  const pagesIn = (built: string) => readdirSync(built).filter((name) => name.endsWith('.html'))
  assert.deepEqual(pagesIn(folder), pagesIn(guideFolder))
})
