// The whole story of a production deployment, in a browser: from a sign-up to a key that has expired.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { OrganizationId } from '../../src/base/ids.ts'
import { changeOrganizationStatus } from '../../src/flow/accounts/organization.ts'
import { Api } from '../support/api.ts'
import { chromiumMissing } from '../support/chromium.ts'
import { openPages } from '../support/dashboard.ts'
import { makePlace, startNode, type TestCaller } from '../support/node.ts'
import { until } from '../support/until.ts'

const skip = chromiumMissing ?? false
const dayMs = 86_400_000

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)

const title = (page: Page, name: string | RegExp) => page.getByRole('heading', { level: 1, name }).waitFor()
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).first().click()

async function signUp(page: Page, email: string): Promise<void> {
  await page.goto('/sign-up')
  await page.getByLabel('Your name').fill('Ben')
  await page.getByLabel('Email address').fill(email)
  await page.getByLabel('Password').fill('correct horse battery staple')
  await press(page, 'Create account')
  await title(page, 'Check your email')
}

/** The path of the link of this kind mailed to the inbox. */
function mailedLink({ api }: TestCaller, inboxId: string, path: string): Promise<string> {
  return until(`the mail with ${path}`, async () => {
    const { messages } = await api.want<{ messages: { text: string }[] }>(
      `/v1/inboxes/${inboxId}/messages?direction=inbound`,
    )
    return messages.map(({ text }) => new RegExp(`${path}#\\S+`).exec(text)?.[0]).find(Boolean)
  })
}

/** A request as the signed-in person's page sends it. */
async function askAs(page: Page, method: string, path: string, body?: object): Promise<number> {
  const request = JSON.stringify({ method, path, body: body && JSON.stringify(body) })
  return await page.evaluate<number>(`(async ({ method, path, body }) => {
    const { csrfToken } = await (await fetch('/app/v1/session')).json()
    const headers = { 'x-posthorn-token': csrfToken, ...(body && { 'content-type': 'application/json' }) }
    return (await fetch(path, { method, headers, body })).status
  })(${request})`)
}

test('check 69a: sign-up, mailed proof, approval, a key for 30 days and a viewer work together', {
  skip,
}, async (t) => {
  const node = await startNode(await makePlace(t), { env: { POSTHORN_MAIL_HOST: 'mx.inbox.test' } })
  const { clock } = node.foundation
  const theirs = await node.createCaller()
  const [ben, eve] = [await theirs.api.createInbox('ben'), await theirs.api.createInbox('eve')]
  const pages = await openPages(t, node, theirs.organizationId)
  const stranger = async () => {
    const page = await (await pages.context.browser()!.newContext({ baseURL: pages.base })).newPage()
    page.setDefaultTimeout(15_000)
    return page
  }
  const page = await stranger()
  await signUp(page, ben.address)
  await page.goto(await mailedLink(theirs, ben.id, '/confirm'))
  await press(page, 'Confirm and sign in')
  await page.getByLabel('Organization name').fill('Harbour Hotel')
  await press(page, 'Request access')
  await title(page, 'Harbour Hotel is awaiting approval')
  assert.equal(await askAs(page, 'GET', '/app/v1/inboxes'), 403, 'pending: nothing may be done yet')

  const session = "fetch('/app/v1/session').then((answer) => answer.json())"
  const id = await page.evaluate<OrganizationId>(`${session}.then(({ organization }) => organization.id)`)
  await changeOrganizationStatus(node.foundation, id, 'active')
  await title(page, 'Send your first email')

  await page.goto('/keys')
  await press(page, 'New key')
  await page.getByLabel('Name', { exact: true }).fill('Front desk')
  await press(page, 'Create key')
  await page.getByText('This is shown only once').first().waitFor()
  const secret = await page.locator('code', { hasText: /^ph_/ }).first().innerText()
  await page.reload()
  await page.getByRole('button', { name: /Front desk/ }).waitFor()
  assert.ok(!(await page.content()).includes(secret.slice(4)), 'nothing shows it again')
  const api = new Api(() => pages.base, secret)
  assert.equal((await api.call('/v1/me')).status, 200)

  assert.equal(await askAs(page, 'POST', '/app/v1/invitations', { email: eve.address, role: 'viewer' }), 201)
  const viewer = await stranger()
  await viewer.goto(await mailedLink(theirs, eve.id, '/invitation'))
  await viewer.getByLabel('Your name').fill('Eve')
  await viewer.getByLabel('Password').fill('another horse battery')
  await press(viewer, 'Join')
  await title(viewer, /Overview|Send your first/)
  await viewer.goto('/keys')
  await title(viewer, 'Keys')
  await viewer.getByRole('button', { name: /Front desk/ }).waitFor()
  assert.equal(await viewer.getByRole('button', { name: 'New key', exact: true }).count(), 0)
  const changes: [method: string, path: string, body?: object][] = [
    ['POST', '/app/v1/inboxes', {}],
    ['POST', '/app/v1/keys', { name: 'x', scopes: ['mailbox:read'], expiresInDays: 1 }],
    ['PATCH', '/app/v1/organization', { name: 'Mine' }],
    ['POST', '/app/v1/suppressions', { email: 'a@far.test' }],
  ]
  for (const change of changes) assert.equal(await askAs(viewer, ...change), 403, change.join(' '))
  assert.equal(await askAs(viewer, 'GET', '/app/v1/inboxes'), 200)

  clock.advance(30 * dayMs - 60_000)
  assert.equal((await api.call('/v1/me')).status, 200)
  clock.advance(60_000)
  assert.equal((await api.call('/v1/me')).status, 401)
})
