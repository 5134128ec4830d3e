// The operator's desk in a real browser: its pages built if necessary, with every page error recorded.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Page } from 'playwright-core'
import { launchBrowser, standStill, violationsOf } from './dashboard.ts'
import { createCaller, type Posthorn, startPosthorn } from './service.ts'
import { type Scope, until } from './until.ts'

const root = resolve(import.meta.dirname, '../..')
const axe = readFileSync(join(root, 'node_modules/axe-core/axe.min.js'), 'utf8')

export interface DeskWindow {
  page: Page
  /** Console errors and warnings, and exceptions. */
  complaints: string[]
  /** Requests to other origins. */
  outside: string[]
  /** Takes a picture in each theme and runs axe in both. Returns its findings. */
  judge(name: string): Promise<string[]>
}

/**
 * A window of this width at the address. Pictures go to the folder `POSTHORN_TEST_PICTURES`, or else to one that is removed
 * with the test.
 */
export async function openWindow(scope: Scope, url: string, widthPx: number): Promise<DeskWindow> {
  const browser = await launchBrowser(scope)
  const page = await browser.newPage({ viewport: { width: widthPx, height: widthPx < 600 ? 844 : 900 } })
  page.setDefaultTimeout(15_000)
  const [complaints, outside]: string[][] = [[], []]
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()))
      complaints!.push(`${message.text()} ${message.location().url}`)
  })
  page.on('pageerror', (error) => void complaints!.push(String(error)))
  const { origin } = new URL(url)
  page.on('request', (request) => {
    if (!request.url().startsWith(`${origin}/`) && !request.url().startsWith('data:'))
      outside!.push(request.url())
  })
  await page.goto(url)
  const folder = picturesFolder(scope)
  const judge = async (name: string) => {
    const found: string[] = []
    await standStill(page)
    for (const theme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' })
      await page.evaluate('new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)))')
      await page.screenshot({ path: join(folder, `${name}-${widthPx}-${theme}.png`) })
      await page.evaluate(axe)
      found.push(...(await violationsOf(page, theme)).map((violation) => `${name} ${theme}: ${violation}`))
    }
    return found
  }
  return { page, complaints: complaints!, outside: outside!, judge }
}

function picturesFolder(scope: Scope): string {
  const given = process.env['POSTHORN_TEST_PICTURES']
  if (given) return given
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-pictures-'))
  scope.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A link to the desk, as the command prints it. */
export async function deskLink(posthorn: Posthorn): Promise<string> {
  return (await posthorn.cli<{ url: string }>(['operator', 'link'])).url
}

/** A service with waiting mail of an approved organization. */
export async function startWithQueue(scope: Scope): Promise<Posthorn> {
  const posthorn = await startPosthorn(scope)
  const { api } = await createCaller(posthorn)
  const inbox = await api.createInbox()
  const send = (to: string) =>
    api.call(`/v1/inboxes/${inbox.id}/messages`, {
      method: 'POST',
      idempotencyKey: `desk-${to.replace('@', '.')}`,
      body: { to: [{ email: to }], subject: 'Your order is on its way', text: 'It left this morning.' },
    })
  await send('first@far.test')
  await until('the queue', () => posthorn.cli(['queue', 'pause', '@capture']).catch(() => null))
  for (const to of ['ada@far.test', 'grace@far.test']) await send(to)
  return posthorn
}
