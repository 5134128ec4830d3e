// The first minute, in pictures: `npm start` on an empty folder prints a link; behind it a mail is sent, received and read.
// Each step is a picture, narrow and wide, in both themes.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { before, type TestContext, test } from 'node:test'
import { chromiumMissing } from '../support/chromium.ts'
import { type DeskWindow, openWindow } from '../support/desk-window.ts'
import { inherited } from '../support/service.ts'
import { until } from '../support/until.ts'

const skip = chromiumMissing ?? false

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)

/** Starts the service as the README does, with free ports and an empty data folder. Returns the printed link. */
async function startAsNewcomer(t: TestContext): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-newcomer-'))
  const ports = {
    POSTHORN_HTTP: '127.0.0.1:0',
    POSTHORN_OPERATOR: '127.0.0.1:0',
    POSTHORN_SMTP: '127.0.0.1:0',
  }
  const service = spawn('npm', ['start'], {
    cwd: resolve(import.meta.dirname, '../..'),
    env: { ...inherited(), ...ports, POSTHORN_DATA_DIR: join(folder, 'data') },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  t.after(async () => {
    service.kill('SIGTERM')
    if (service.exitCode === null && service.signalCode === null) await once(service, 'exit')
    rmSync(folder, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 })
  })
  let printed = ''
  service.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  return await until('the link', () => /http:\S+\/sign-in#\S+(?=\n)/.exec(printed)?.[0], {
    timeoutMs: 60_000,
  })
}

/** Waits for the heading and takes the pictures. Returns axe's findings, and whether the page is wider than the window. */
async function look({ page, judge }: DeskWindow, name: string, title: string): Promise<string[]> {
  await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor()
  await page.locator('[role=status][aria-label="Loading…"]').first().waitFor({ state: 'detached' })
  const found = await judge(`first-${name}`)
  const isWide = await page.evaluate('document.documentElement.scrollWidth > innerWidth')
  return isWide ? [...found, `${name} is wider than the window`] : found
}

for (const widthPx of [390, 1280])
  test(`from the printed link to a sent and received mail takes under a minute, ${widthPx} wide`, {
    skip,
  }, async (t) => {
    const link = await startAsNewcomer(t)
    const startMs = performance.now()
    const window = await openWindow(t, link, widthPx)
    const { page, complaints, outside } = window
    const found = await look(window, 'steps', 'Send your first email')
    await page.getByLabel('Address').fill('hello')
    await page.getByRole('button', { name: 'Create inbox' }).click()
    await page.getByRole('button', { name: 'Send email' }).click()
    await page.getByText(/^It arrived after/).waitFor()
    const tookS = (performance.now() - startMs) / 1000
    t.diagnostic(`${tookS.toFixed(1)} s from the link to the mail, pictures and axe among them`)
    assert.ok(tookS < 60, `it took ${tookS} s`)
    found.push(...(await look(window, 'arrived', 'Send your first email')))

    await page.getByRole('link', { name: 'Open email' }).click()
    await page
      .getByText('This email went out by SMTP and came back.')
      .filter({ visible: true })
      .first()
      .waitFor()
    found.push(...(await look(window, 'mail', 'Mail')))
    await page.goto(new URL('/', link).href)
    await page.getByRole('link', { name: /Your first email/ }).waitFor()
    found.push(...(await look(window, 'overview', 'Overview')))
    await page.getByRole('link', { name: /Your first email/ }).click()
    found.push(...(await look(window, 'life', 'Your first email')))
    assert.deepEqual(found, [])
    assert.deepEqual(complaints, [])
    assert.deepEqual(outside, [])
  })
