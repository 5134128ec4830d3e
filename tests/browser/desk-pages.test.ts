// Every page of the operator's desk, narrow and wide, in both themes: no axe finding, no page error, no horizontal overflow.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { chromiumMissing } from '../support/chromium.ts'
import { type DeskWindow, deskLink, openWindow, startWithQueue } from '../support/desk-window.ts'

const skip = chromiumMissing ?? false
/** The page asks who is signed in while no person is. */
const isClosed = /401 \(Unauthorized\)/

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)

/** The desk's routes checked here. The rest of the list are states of these pages. */
function readRoutes(): string[] {
  const text = readFileSync(join(import.meta.dirname, '../../dashboard/src/desk/router.tsx'), 'utf8')
  return [...text.matchAll(/\bpage\('([^']+)'/g)].map(([, path]) => path!)
}

/** The link to each page, and the page's title. */
const pages: [name: string, hash: string, title: string][] = [
  ['home', '/', 'Approvals'],
  ['approvals', '/approvals', 'Approvals'],
  ['organizations', '/organizations', 'Organizations'],
  ['queues', '/queues', 'Queues'],
  ['queue', '/queues/@capture', '@capture'],
  ['nodes', '/nodes', 'Nodes & health'],
  ['mail', '/mail', 'Mail'],
  ['captured', '/mail?kind=captured', 'Mail'],
  ['audit', '/audit', 'Audit log'],
  ['numbers', '/numbers', 'Metrics'],
  ['nothing', '/nothing', 'Page not found'],
]

async function judgePages({ page, judge }: DeskWindow, ids: Ids): Promise<string[]> {
  const found: string[] = []
  for (const [name, hash, title] of pagesWith(ids)) {
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`)
    await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor()
    await page.locator('[role=status][aria-label="Loading…"]').waitFor({ state: 'detached' })
    if (name === 'nodes') await examine(page)
    found.push(...(await judge(name)))
    const isWide = await page.evaluate('document.documentElement.scrollWidth > innerWidth')
    if (isWide) found.push(`${name} is wider than the window`)
  }
  await page.getByRole('button', { name: /^Theme, shortcuts and close/ }).press('Enter')
  await page.getByRole('menu').waitFor()
  return [...found, ...(await judge('menu'))]
}

interface Ids {
  organizationId: string
  mailId: string
}

function pagesWith({ organizationId, mailId }: Ids): typeof pages {
  return [
    ...pages,
    ['organization', `/organizations/${organizationId}`, 'Test'],
    ['one mail', `/mail/captured/${mailId}`, 'Your order is on its way'],
  ]
}

test('the list of checked pages has every route of the desk', () => {
  const hashes = pagesWith({ organizationId: 'x', mailId: 'x' }).map(([, hash]) => hash)
  const unseen = readRoutes().filter((path) => {
    const pattern = new RegExp(`^${path.replaceAll(/\$\w+/g, '[^/]+')}$`)
    return !hashes.some((hash) => pattern.test(hash))
  })
  assert.deepEqual(unseen, [])
})

async function examine(page: DeskWindow['page']): Promise<void> {
  await page.getByRole('button', { name: 'Run checks' }).click()
  await page.getByRole('button', { name: 'Run checks again' }).waitFor()
}

/** On a phone the pages without room in the bar are behind its last button. */
async function openMorePages({ page }: DeskWindow): Promise<void> {
  await page.keyboard.press('Escape')
  await page.getByRole('link', { name: 'Organizations' }).filter({ visible: true }).waitFor()
  await page.getByRole('button', { name: 'More', exact: true }).click()
  await page.getByRole('dialog').getByRole('link', { name: 'Nodes & health' }).click()
  await page.getByRole('heading', { level: 1, name: 'Nodes & health' }).waitFor()
}

test('axe finds nothing on any page of the desk, narrow and wide, in both themes', { skip }, async (t) => {
  const posthorn = await startWithQueue(t)
  await posthorn.cli(['org', 'create', '--name', 'Harbor & Sons'])
  const { organizations } = await posthorn.cli<{ organizations: { id: string; name: string }[] }>([
    'org',
    'list',
  ])
  const { id } = organizations.find(({ name }) => name === 'Test')!
  for (const widthPx of [390, 1280]) {
    const closed = await openWindow(t, posthorn.operator, widthPx)
    await closed.page.getByRole('heading', { name: 'Open the desk' }).waitFor()
    assert.deepEqual(await closed.judge('sign-in'), [])
    assert.deepEqual(
      closed.complaints.filter((words) => !isClosed.test(words)),
      [],
    )
    const window = await openWindow(t, await deskLink(posthorn), widthPx)
    await window.page.getByRole('heading', { level: 1, name: 'Approvals' }).waitFor()
    const mailId = await window.page.evaluate<string>(
      "fetch('/desk/v1/mail/captured').then((answer) => answer.json()).then(({ mails }) => mails[0].id)",
    )
    assert.deepEqual(await judgePages(window, { organizationId: id, mailId }), [])
    if (widthPx === 390) await openMorePages(window)
    assert.deepEqual(window.complaints, [])
  }
})
