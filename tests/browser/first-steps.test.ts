// The shell in a browser: the first steps by buttons, search and keyboard shortcuts, the theme, the settings; axe on each.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { chromiumMissing } from '../support/chromium.ts'
import { openPages } from '../support/dashboard.ts'
import { makePlace, send, startNode } from '../support/node.ts'

const skip = chromiumMissing ?? false
const node = await startNode(await makePlace({ after }))

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)

test('the first steps lead to an inbox, a sent mail, its answer, and reading it', { skip }, async (t) => {
  const { api, organizationId } = await node.createCaller()
  const { page, open, audit, complaints } = await openPages(t, node, organizationId)
  await open('/', 'Send your first email')
  assert.deepEqual(await audit(), [])
  await page.getByLabel('Address').fill('hello')
  await page.getByRole('button', { name: 'Create inbox' }).click()
  await page.getByRole('button', { name: 'Send email' }).click()
  await page.getByText(/^It arrived after/).waitFor()
  assert.deepEqual(await audit(), [])

  const { inboxes } = await api.want<{ inboxes: { id: string; address: string }[] }>('/v1/inboxes')
  assert.deepEqual(
    inboxes.map(({ address }) => address),
    ['hello@inbox.test'],
  )
  const code = page.getByRole('region', { name: 'Read the email: curl' })
  await page.getByText('Show code').last().click()
  assert.match(await code.innerText(), new RegExp(`/v1/inboxes/${inboxes[0]!.id}/messages`))
  const read = page.getByRole('link', { name: 'Open email' })
  assert.match((await read.getAttribute('href')) ?? '', new RegExp(`^/mail/${inboxes[0]!.id}/thr_`))

  await open('/', 'Overview')
  await page.getByRole('link', { name: /Your first email/ }).waitFor()
  await page.getByText('Accepted', { exact: true }).waitFor()
  assert.deepEqual(await audit(), [])
  assert.deepEqual(complaints, [])
})

test('the overview shows the first mail, although its event is late and the page was seen before', {
  skip,
}, async (t) => {
  const { api, organizationId } = await node.createCaller()
  const inbox = await api.createInbox('early')
  const { page, open } = await openPages(t, node, organizationId)
  await page.route('**/app/v1/events*', (route) => route.abort())
  await open('/', 'Send your first email')
  await page.getByRole('link', { name: 'Sending', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Sending' }).waitFor()
  await send(api, inbox, [inbox.address])
  await page.getByRole('link', { name: 'Overview', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Overview', exact: true }).waitFor()
})

test('the keyboard finds and reaches everything', { skip }, async (t) => {
  const { api, organizationId } = await node.createCaller()
  const inbox = await api.want<{ id: string }>('/v1/inboxes', {
    method: 'POST',
    status: 201,
    body: { localPart: 'harbour', displayName: 'Harbour' },
  })
  const { page, open, audit, complaints } = await openPages(t, node, organizationId)
  await open('/', 'Send your first email')
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
  assert.deepEqual(await audit(), [])
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'hidden' })
  await page.keyboard.press('g')
  await page.keyboard.press('t')
  await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor()
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'Settings')
  assert.equal(await page.title(), 'Settings · Posthorn')

  await page.keyboard.press('Control+k')
  await page.getByRole('combobox').fill('harb')
  await page.getByRole('option', { name: /harbour@inbox\.test/ }).waitFor()
  assert.deepEqual(await audit(), [])
  await page.keyboard.press('Enter')
  await page.waitForURL(`**/mail/${inbox.id}`)
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox').fill('inb_ffffffffffffffffffffffff')
  await page.getByText('No page, inbox or ID matches.').waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox').fill('Refund')
  await page.getByRole('option', { name: 'Search all mail for “Refund”' }).waitFor()
  await page.keyboard.press('Enter')
  await page.waitForURL('**/mail/all?q=Refund')
  await page.getByText('No messages found').waitFor()
  // The missing inbox was requested on purpose.
  assert.deepEqual(
    complaints.filter((text) => !text.includes('404')),
    [],
  )
})

test('the settings show name, theme, sessions and limits, and sign the person out', { skip }, async (t) => {
  const { organizationId } = await node.createCaller()
  const { page, open, audit, complaints } = await openPages(t, node, organizationId)
  await open('/settings', 'Settings')
  await page.getByText('Messages today').waitFor()
  await page.getByText('This session').waitFor()
  assert.deepEqual(await audit(), [])
  const name = page.getByRole('textbox', { name: 'Name', exact: true }).first()
  await name.fill('Ada King')
  await name.press('Enter')
  await page.getByText('Saved').waitFor()
  await page.getByRole('radio', { name: 'Dark' }).check({ force: true })
  await page.reload()
  await page.getByText('Messages today').waitFor()
  await page.getByText('This session').waitFor()
  assert.equal(await page.evaluate('document.documentElement.dataset.theme'), 'dark')
  const paper = await page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor')
  assert.equal(paper, 'rgb(19, 18, 16)')

  const signOut = async () => {
    await page.getByRole('button', { name: /Ada King$/ }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
  }
  await page.route('**/app/v1/session', (route) => route.abort(), { times: 1 })
  await signOut()
  await page.getByText('The service does not respond').waitFor()
  assert.match(complaints.splice(0).join(), /ERR_FAILED/)
  await page.getByRole('heading', { level: 1, name: /Overview|Send your first/ }).waitFor()
  // The answer for a session that has ended already.
  const ended = {
    status: 401,
    contentType: 'application/json',
    body: '{"error":"session_required","message":""}',
  }
  await page.route('**/app/v1/session', (route) => route.fulfill(ended), { times: 1 })
  await signOut()
  await page.getByRole('heading', { level: 1, name: 'Sign in', exact: true }).waitFor()
  await page.waitForURL(({ search }) => search === '')
  assert.match(complaints.splice(0).join(), /^[^,]*401[^,]*$/)
  await open('/settings', 'Settings')
  await signOut()
  await page.getByRole('heading', { level: 1, name: 'Signing you out' }).waitFor()
  await page.getByRole('heading', { level: 1, name: 'Sign in', exact: true }).waitFor()
  assert.deepEqual(complaints, [])
  await page.goto('/settings')
  await page.waitForURL('**/sign-in?to=%2Fsettings')
})

test('before any code runs, pages show the empty frame, except those before the sign-in', {
  skip,
}, async (t) => {
  const { organizationId } = await node.createCaller()
  const { page, context } = await openPages(t, node, organizationId)
  await context.route(/\/assets\/(?!theme-)[^/]+\.js$/, (route) => route.abort())
  await page.goto('/keys')
  await page.locator('[data-shell]').waitFor()
  await page.goto('/sign-in')
  await page.locator('[data-shell]').waitFor({ state: 'hidden' })
  assert.equal(await page.locator('[data-shell]').count(), 1)
})
