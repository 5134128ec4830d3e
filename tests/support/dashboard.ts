// The dashboard in a real browser: built if necessary, signed in, with every page error recorded.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { newUuid, type OrganizationId, type PersonId } from '../../src/base/ids.ts'
import { addMember } from '../../src/flow/people/sessions.ts'
import { newToken } from '../../src/flow/people/tokens.ts'
import { insertPerson, type MemberRole } from '../../src/store/people/people.ts'
import { insertToken } from '../../src/store/people/person-tokens.ts'
import { Browser as Client } from './browser-session.ts'
import { chromiumPath } from './chromium.ts'
import type { TestNode } from './node.ts'
import type { Scope } from './until.ts'

const root = resolve(import.meta.dirname, '../..')
const axe = join(root, 'node_modules/axe-core/axe.min.js')

export interface Pages {
  page: Page
  context: BrowserContext
  base: string
  /** Console errors and exceptions. */
  complaints: string[]
  /** Opens an address of the dashboard and waits for its title. */
  open(path: string, title: string): Promise<void>
  /** The findings of axe on the current page, in both themes. */
  audit(): Promise<string[]>
}

export function urlOfListener({ app }: Pick<TestNode, 'app'>): string {
  const { http } = app.listening
  return `http://${http?.host}:${http?.port}`
}

/** A new person of the organization, signed in. */
export async function signInAs(
  node: Pick<TestNode, 'app' | 'foundation'>,
  organizationId: string,
  role: MemberRole,
): Promise<Client> {
  const { db, clock } = node.foundation
  const id = await addPerson(node, organizationId, role)
  return await Client.of({ base: urlOfListener(node), db, clock }, id)
}

async function addPerson(
  { foundation: { db, clock } }: Pick<TestNode, 'foundation'>,
  organizationId: string,
  role: MemberRole,
): Promise<PersonId> {
  const id = newUuid<PersonId>()
  const at = clock.now()
  const email = `${role}-${id}@people.test`
  await db.transaction(async (tx) => {
    await insertPerson(tx, { id, email, name: 'Ada', passwordHash: null, confirmedAt: at, createdAt: at })
    await addMember(tx, { organizationId: organizationId as OrganizationId, personId: id, email, role, at })
  })
  return id
}

/** Builds the pages if necessary, and starts a browser that ends with the scope. */
export async function launchBrowser(scope: Scope): Promise<Browser> {
  if (!existsSync(join(root, 'dashboard/dist/index.html')))
    execFileSync(join(root, 'node_modules/.bin/vite'), ['build', 'dashboard'], { cwd: root, stdio: 'ignore' })
  const browser = await chromium.launch({ executablePath: chromiumPath!, args: ['--no-sandbox'] })
  scope.after(() => browser.close())
  return browser
}

/** The one-time address that signs a new person in. */
export async function signInAddress(
  node: Pick<TestNode, 'foundation'>,
  organizationId: string,
  role: MemberRole = 'owner',
): Promise<string> {
  return `/sign-in#${await linkOf(node, organizationId, role)}`
}

/** The part after the # in a link for a new person. */
async function linkOf(
  node: Pick<TestNode, 'foundation'>,
  organizationId: string,
  role: MemberRole,
): Promise<string> {
  const { db, clock } = node.foundation
  const personId = await addPerson(node, organizationId, role)
  const { token, hash } = newToken()
  const expiresAt = new Date(clock.nowMs() + 60_000)
  await db.transaction((tx) =>
    insertToken(tx, { hash, purpose: 'sign_in', personId, createdAt: clock.now(), expiresAt }),
  )
  return token
}

/** A window with a signed-in person of the organization, by default an owner. */
export async function openPages(
  scope: Scope,
  node: Pick<TestNode, 'app' | 'foundation'>,
  organizationId: string,
  viewport = { width: 1280, height: 900 },
  role: MemberRole = 'owner',
): Promise<Pages> {
  const browser = await launchBrowser(scope)
  const base = urlOfListener(node)
  const link = await linkOf(node, organizationId, role)
  const context = await browser.newContext({ viewport, baseURL: base, reducedMotion: 'reduce' })
  const page = await context.newPage()
  await page.goto('/sign-in')
  await page.evaluate(
    `fetch('/app/v1/session/link', { method: 'POST', headers: { 'content-type': 'application/json' },
      body: '${JSON.stringify({ token: link })}' }).then(({ ok }) => { if (!ok) throw new Error('not signed in') })`,
  )
  page.setDefaultTimeout(10_000)
  const complaints: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(`${message.text()} ${message.location().url}`)
  })
  page.on('pageerror', (error) => void complaints.push(String(error)))
  const open = async (path: string, title: string) => {
    await page.goto(path)
    await page.getByRole('heading', { level: 1, name: title }).waitFor()
  }
  return { page, context, base, complaints, open, audit: () => audit(page) }
}

/** Switches off transitions and animations, so that colors are final. */
export async function standStill(page: Page): Promise<void> {
  await page.evaluate(`(() => {
    const still = new CSSStyleSheet()
    still.replaceSync('*, ::before, ::after { transition: none !important; animation: none !important }')
    document.adoptedStyleSheets.push(still)
  })()`)
}

/** The findings of axe. Themes differ only in colors, so the second theme is checked for colors only. */
export async function violationsOf(page: Page, theme: 'light' | 'dark'): Promise<string[]> {
  const options = {
    resultTypes: ['violations'],
    ...(theme === 'dark' && {
      runOnly: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] },
    }),
  }
  return await page.evaluate(`axe.run(document, ${JSON.stringify(options)}).then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html.slice(0, 200)).join(' | ')))`)
}

/** The findings of axe on the current page, in both themes. */
export async function audit(page: Page): Promise<string[]> {
  await page.evaluate(readFileSync(axe, 'utf8'))
  await standStill(page)
  const found: string[] = []
  for (const theme of ['light', 'dark'] as const) {
    await page.evaluate(`document.documentElement.dataset.theme = '${theme}'`)
    await page.evaluate('new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)))')
    for (const violation of await violationsOf(page, theme)) found.push(`${theme} ${violation}`)
  }
  await page.evaluate('delete document.documentElement.dataset.theme')
  return found
}
