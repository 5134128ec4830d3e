// Signing up and in, in a browser: confirmation, the request for access, a lost password, an invitation, a passkey.
import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { OrganizationId } from '../../src/base/ids.ts'
import { changeOrganizationStatus } from '../../src/flow/accounts/organization.ts'
import { chromiumMissing } from '../support/chromium.ts'
import { openPages, type Pages } from '../support/dashboard.ts'
import { makePlace, startNode, type TestCaller } from '../support/node.ts'
import { until } from '../support/until.ts'

const skip = chromiumMissing ?? false
const password = 'correct horse battery staple'

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)

/** A service with an inbox, whose address belongs to a person without an account. */
async function setScene(t: TestContext) {
  const node = await startNode(await makePlace(t), { env: { POSTHORN_SIGN_UP: 'open' } })
  const caller = await node.createCaller()
  const { id } = await caller.api.want<{ id: string }>('/v1/inboxes', {
    method: 'POST',
    status: 201,
    body: { localPart: 'ben' },
  })
  const pages = await openPages(t, node, caller.organizationId)
  /** The path of the latest mailed link of this kind. */
  const mailedLink = (path: string) => until(`the mail with ${path}`, () => linkIn(caller, id, path))
  return { node, caller, pages, mailedLink, stranger: () => openStranger(pages) }
}

async function linkIn({ api }: TestCaller, inboxId: string, path: string): Promise<string | undefined> {
  const { messages } = await api.want<{ messages: { text: string }[] }>(
    `/v1/inboxes/${inboxId}/messages?direction=inbound`,
  )
  return messages.map(({ text }) => new RegExp(`${path}#\\S+`).exec(text)?.[0]).find(Boolean)
}

/** A window of the same browser in which no person is signed in. */
async function openStranger({ context, base }: Pages): Promise<Page> {
  const page = await (await context.browser()!.newContext({ baseURL: base })).newPage()
  page.setDefaultTimeout(10_000)
  return page
}

const title = (page: Page, name: string | RegExp) => page.getByRole('heading', { level: 1, name }).waitFor()

async function signUp(page: Page): Promise<void> {
  await page.goto('/sign-up')
  await page.getByLabel('Your name').fill('Ben')
  await page.getByLabel('Email address').fill('ben@inbox.test')
  await page.getByText('Posthorn', { exact: true }).waitFor()
  await page.getByLabel('Password').fill('short')
  await page.getByRole('button', { name: 'Create account' }).click()
  await page.getByText('Use at least 10 characters.').waitFor()
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Create account' }).click()
  await title(page, 'Check your email')
}

test('a person signs up, confirms by mail, waits for approval, and later resets a lost password', {
  skip,
}, async (t) => {
  const { node, mailedLink, stranger } = await setScene(t)
  const page = await stranger()
  await signUp(page)
  await page.goto(await mailedLink('/confirm'))
  await page.getByRole('button', { name: 'Confirm and sign in' }).click()
  await title(page, 'Name your organization')
  assert.equal(new URL(page.url()).hash, '')
  await page.getByLabel('Organization name').fill('Harbour Hotel')
  await page.getByRole('button', { name: 'Request access' }).click()
  await title(page, 'Harbour Hotel is awaiting approval')
  await page.goto('/keys')
  await title(page, 'Harbour Hotel is awaiting approval')

  const id = await page.evaluate<OrganizationId>(
    "fetch('/app/v1/session').then((answer) => answer.json()).then(({ organization }) => organization.id)",
  )
  await changeOrganizationStatus(node.foundation, id, 'active')
  await title(page, 'Send your first email')

  const other = await stranger()
  await other.goto('/reset')
  await other.getByLabel('Email address').fill('ben@inbox.test')
  await other.getByRole('button', { name: 'Send link' }).click()
  await title(other, 'Check your email')
  // An intruder with their session makes a key and a webhook, and adds a passkey.
  const keyId = await page.evaluate<string>(`(async () => {
    const { csrfToken } = await (await fetch('/app/v1/session')).json()
    const headers = { 'content-type': 'application/json', 'x-posthorn-token': csrfToken }
    const post = async (path, body) =>
      (await fetch('/app/v1/' + path, { method: 'POST', headers, body: JSON.stringify(body) })).json()
    await post('webhooks', { url: 'https://app.example.com/hooks' })
    return (await post('keys', { name: 'Production', scopes: ['mailbox:read'] })).key.id
  })()`)
  await node.foundation.db.query(
    `insert into passkey (id, person_id, name, credential_id, public_key, sign_count, transports, created_at)
    select gen_random_uuid(), id, 'Stranger', 'c', 'k', 0, '{}', now() from person where email = 'ben@inbox.test'`,
  )
  await other.goto(await mailedLink('/reset'))
  assert.ok(!(await other.getByLabel('Keep the passkey “Stranger”').isChecked()))
  const ofHotel = other.getByRole('group', { name: 'Harbour Hotel' })
  const webhook = ofHotel.getByLabel('Keep the webhook https://app.example.com/hooks')
  assert.ok(!(await webhook.isChecked()))
  await other.getByText('Programs that use a removed API key stop working at once').waitFor()
  await other.getByRole('button', { name: 'Set password and remove 3 entries' }).waitFor()
  await ofHotel.getByLabel('Keep the API key “Production”').check()
  await other.getByLabel('New password').fill('another horse battery')
  await other.getByRole('button', { name: 'Set password and remove 2 entries' }).click()
  await title(other, 'Send your first email')
  const { rows, hooks } = await other.evaluate<{ rows: object[]; hooks: object[] }>(`(async () => {
    const read = async (path) => (await fetch('/app/v1/' + path)).json()
    const [{ keys }, { webhooks }] = [await read('keys'), await read('webhooks')]
    return {
      rows: keys.map(({ id, revokedAt }) => ({ id, revokedAt })),
      hooks: webhooks.map(({ status }) => ({ status })),
    }
  })()`)
  assert.deepEqual([rows, hooks], [[{ id: keyId, revokedAt: null }], [{ status: 'disabled' }]])
  // The former sessions have ended, and the page says so at its next step.
  await page.goto('/settings')
  await title(page, 'Sign in')
  await page.getByLabel('Email address').fill('ben@inbox.test')
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('alert').waitFor()
  await page.getByLabel('Password').fill('another horse battery')
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await title(page, 'Settings')
})

test('an invitation makes a viewer, whose overview has no button that changes anything', {
  skip,
}, async (t) => {
  const { pages, mailedLink, stranger } = await setScene(t)
  const invited = await pages.page.evaluate<number>(`(async () => {
    const { csrfToken } = await (await fetch('/app/v1/session')).json()
    const headers = { 'content-type': 'application/json', 'x-posthorn-token': csrfToken }
    const body = JSON.stringify({ email: 'ben@inbox.test', role: 'viewer' })
    return (await fetch('/app/v1/invitations', { method: 'POST', headers, body })).status
  })()`)
  assert.equal(invited, 201)
  const page = await stranger()
  await page.goto(await mailedLink('/invitation'))
  await title(page, 'Join Test')
  await page.getByLabel('Your name').fill('Ben')
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Join' }).click()
  await title(page, 'Overview')
  await page.goto('/settings')
  await page.getByText('Only owners can change the name.').waitFor()
})

test('a person adds a passkey and signs in with it', { skip }, async (t) => {
  const { pages } = await setScene(t)
  // A passkey needs a host name. An IP address does not work.
  const context = await pages.context
    .browser()!
    .newContext({ storageState: await pages.context.storageState() })
  const page = await context.newPage()
  page.setDefaultTimeout(10_000)
  const base = pages.base.replace('127.0.0.1', 'localhost')
  const [cookie] = await pages.context.cookies()
  await context.addCookies([{ ...cookie!, domain: 'localhost' }])
  const tools = await context.newCDPSession(page)
  await tools.send('WebAuthn.enable')
  await tools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  await page.goto(`${base}/settings`)
  await page.getByLabel('Device name').fill('Laptop')
  await page.getByRole('button', { name: 'Add passkey' }).click()
  await page.getByText('The passkey is added').waitFor()
  await page.getByRole('button', { name: 'Remove Laptop' }).waitFor()
  await context.clearCookies()
  await page.goto(`${base}/sign-in`)
  await page.getByRole('button', { name: 'Use a passkey' }).click()
  await title(page, /Overview|Send your first/)
})

test('axe finds nothing on the pages before the sign-in', { skip }, async (t) => {
  const { pages } = await setScene(t)
  await pages.context.clearCookies()
  for (const [path, name] of [
    ['/sign-in?refused=link_expired', 'Sign in'],
    ['/reset', 'Reset your password'],
    ['/confirm', 'Confirm your address'],
  ] as const) {
    await pages.page.goto('about:blank')
    await pages.open(path, name)
    assert.deepEqual(await pages.audit(), [], path)
  }
  assert.deepEqual(pages.complaints, [])
})
