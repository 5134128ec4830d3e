// The pages of keys, members and the audit log, in a real browser: the API confirms each change.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { before, test } from 'node:test'
import { promisify } from 'node:util'
import { changeLimits } from '../../src/flow/accounts/organization.ts'
import { chromiumMissing } from '../support/chromium.ts'
import { openPages, signInAs } from '../support/dashboard.ts'
import { makePlace, startNode } from '../support/node.ts'
import { inherited } from '../support/service.ts'

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)
const skip = chromiumMissing ?? false

/** Runs a command as a person who copied it would. */
async function run(command: string): Promise<Record<string, unknown>> {
  const { stdout } = await promisify(execFile)('bash', ['-c', `${command} -sS`], { env: inherited() })
  return JSON.parse(stdout)
}

test('a new key works as shown, is never shown again, and is rotated and revoked', { skip }, async (t) => {
  const node = await startNode(await makePlace(t))
  const { api, organizationId } = await node.createCaller()
  const inbox = await api.createInbox()
  const pages = await openPages(t, node, organizationId)
  const { page, base } = pages
  await page.emulateMedia({ reducedMotion: 'reduce' })
  const text = (wanted: string | RegExp) => page.getByText(wanted).first().waitFor()
  const press = (name: string) => page.getByRole('button', { name, exact: true }).first().click()
  const secretOf = () => page.locator('code', { hasText: /^ph_/ }).first().innerText()
  const callOf = () => page.locator('pre code').first().innerText()
  const statusOf = async (secret: string) =>
    (await fetch(`${base}/v1/me`, { headers: { 'x-api-key': secret } })).status
  await pages.open('/keys', 'Keys')
  await text('Last used')
  assert.deepEqual(await pages.audit(), [])

  await press('New key')
  await page.getByRole('dialog').waitFor()
  await page.keyboard.press('Enter')
  await text('Enter a name')
  await page.getByLabel('Name', { exact: true }).fill('Booking agent')
  await page.getByLabel('One agent’s inbox').check()
  assert.ok(await page.getByLabel('Mark mail as automatic').isChecked())
  await page.getByText('Permissions, inboxes, restrictions').click()
  await page.getByText('11 API calls').click()
  await text('GET /v1/inboxes/{inboxId}/export')
  await press('Create key')
  await text('Choose at least one inbox.')
  await page.getByLabel(inbox.address).check()
  assert.deepEqual(await pages.audit(), [])
  await press('Create key')
  await text('This is shown only once')
  assert.deepEqual(await pages.audit(), [])
  const secret = await secretOf()
  const read = await run(await callOf())
  assert.deepEqual(read['messages'], [])
  await press('I have copied it')
  await page.reload()
  await page.getByRole('button', { name: /Booking agent/ }).waitFor()
  assert.ok(!(await page.content()).includes(secret.slice(4)), 'nothing shows it again')

  await page.getByRole('button', { name: /Booking agent/ }).click()
  await text('Marked')
  await text('mailbox:send')
  assert.deepEqual(await pages.audit(), [])
  await press('Rotate')
  const newName = page.getByLabel('Name of the new key')
  assert.equal(await newName.inputValue(), 'Booking agent 2')
  await newName.fill(' Booking agent')
  await text('An active key has this name')
  await newName.fill('Booking agent 2')
  await press('Create new key')
  await text('This is shown only once')
  const [second, call] = [await secretOf(), await callOf()]
  await press('I have stored it')
  await text('Waiting for the first call with the new key')
  assert.deepEqual(await pages.audit(), [])
  await run(call)
  await text('Your program uses the new key.')
  assert.equal(await statusOf(secret), 200)
  await press('Continue')
  await press('Revoke old key')
  await text('The key is revoked.')
  assert.deepEqual([await statusOf(secret), await statusOf(second)], [401, 200])

  await page.getByRole('button', { name: /Booking agent 2/ }).click()
  await press('Revoke')
  assert.ok(await page.getByRole('button', { name: 'Revoke key' }).isDisabled())
  await page.getByLabel(/Type Booking agent 2/).fill('Booking agent 2')
  await press('Revoke key')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  assert.equal(await statusOf(second), 401)
  await press('All')
  await text('Revoked')
  assert.deepEqual(await pages.audit(), [])

  await pages.open('/audit', 'Audit log')
  await text(/created the key/)
  assert.deepEqual(await pages.audit(), [])
  await page.getByPlaceholder('A name').fill('Booking agent 2')
  const entries = page.getByRole('list', { name: 'Audit entries' }).getByRole('listitem')
  await entries.nth(2).waitFor({ state: 'detached' })
  await entries.nth(1).waitFor()
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByText('Export CSV').click()])
  assert.match(readFileSync(await file.path(), 'utf8'), /"key\.rotated","Booking agent 2"/)

  await pages.open('/sending', 'Sending')
  await text('POST /v1/send and POST /v1/validate need a server key.')
  await pages.open('/keys', 'Keys')
  await press('New key')
  await text('The operator of this service can grant your organization server keys.')
  assert.equal(await page.getByLabel('Server', { exact: true }).count(), 0)
  await changeLimits(node.foundation, organizationId, { serverKeys: true })
  await page.reload()
  await press('New key')
  await page.getByLabel('Name', { exact: true }).fill('Shop')
  await page.getByLabel('Server', { exact: true }).check()
  assert.ok(await page.getByLabel('Send without an inbox').isChecked())
  assert.equal(await page.getByLabel('Expires in', { exact: true }).inputValue(), '365')
  assert.deepEqual(await pages.audit(), [])
  await press('Create key')
  await text('This is shown only once')
  assert.deepEqual((await run(await callOf()))['submissions'], [])
  const shop = await fetch(`${base}/v1/me`, { headers: { 'x-api-key': await secretOf() } })
  const { apiKey } = (await shop.json()) as { apiKey: { kind: string; scopes: string[] } }
  assert.deepEqual(
    [apiKey.kind, apiKey.scopes],
    ['server', ['delivery:send', 'validation:use', 'delivery:read']],
  )
  assert.deepEqual(pages.complaints, [])
})

test('an owner invites members, changes roles and removes members, and a viewer changes nothing', {
  skip,
}, async (t) => {
  const node = await startNode(await makePlace(t))
  const { organizationId } = await node.createCaller()
  const member = await signInAs(node, organizationId, 'member')
  const pages = await openPages(t, node, organizationId)
  const { page } = pages
  await page.emulateMedia({ reducedMotion: 'reduce' })
  const text = (wanted: string | RegExp) => page.getByText(wanted).first().waitFor()
  const press = (name: string) => page.getByRole('button', { name, exact: true }).first().click()
  await pages.open('/members', 'Members')
  await text('You are the only owner')
  await press('Invite')
  await page.getByLabel('Email address').fill('grace@people.test')
  await page.getByLabel('Viewer').check()
  assert.deepEqual(await pages.audit(), [])
  await press('Send invitation')
  await text('Open invitations')
  assert.deepEqual(await pages.audit(), [])
  await press('Withdraw')
  await press('Withdraw invitation')
  await text('The invitation is withdrawn.')

  const made = await member.ask('POST', '/app/v1/keys', { name: 'Left behind', scopes: ['mailbox:read'] })
  assert.equal(made.status, 201)
  const row = page.getByRole('row').filter({ hasText: 'member-' })
  await row.getByRole('button').click()
  await page.getByRole('menuitem', { name: 'Change role' }).click()
  await page.getByLabel('Viewer').check()
  await text('Left behind')
  await page.getByLabel('Also revoke 1 key').uncheck()
  await text('These keep working.')
  assert.deepEqual(await pages.audit(), [])
  await page.getByRole('dialog').getByRole('button', { name: 'Change role' }).click()
  await row.getByText('Viewer').waitFor()
  const refused = await member.ask('POST', '/app/v1/keys', { name: 'mine', scopes: ['mailbox:read'] })
  assert.deepEqual([refused.status, refused.body.error], [403, 'insufficient_scope'])

  const email = await row.getByText(/@people\.test$/).innerText()
  await row.getByRole('button').click()
  await page.getByRole('menuitem', { name: 'Remove' }).click()
  assert.ok(await page.getByLabel('Also revoke 1 key').isChecked())
  await text('Left behind')
  assert.deepEqual(await pages.audit(), [])
  await page.getByLabel(`Type ${email} to confirm`).fill(email)
  await press('Remove member')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await row.waitFor({ state: 'detached' })
  assert.equal((await member.ask('GET', '/app/v1/members')).status, 403)
  await pages.open('/keys', 'Keys')
  await page.getByRole('button', { name: 'All', exact: true }).click()
  const left = page.getByRole('row').filter({ hasText: 'Left behind' })
  await left.getByText('Revoked').waitFor()
  await left.getByRole('button').click()
  await page.getByRole('dialog').getByText(email).waitFor()
  assert.deepEqual(pages.complaints, [])
})

test('a viewer reads every page of keys, webhooks and members, and sees no button that would be refused', {
  skip,
}, async (t) => {
  const node = await startNode(await makePlace(t))
  const { api, organizationId } = await node.createCaller()
  const body = { url: 'http://127.0.0.1:9999/hooks', description: 'Production' }
  const { id } = await api.want<{ id: string }>('/v1/webhooks', { method: 'POST', status: 201, body })
  const { page, open, audit, complaints } = await openPages(t, node, organizationId, undefined, 'viewer')
  await page.emulateMedia({ reducedMotion: 'reduce' })
  for (const [path, title, seen] of [
    ['/keys', 'Keys', 'Last used'],
    ['/webhooks', 'Webhooks', 'Production'],
    [`/webhooks/${id}`, 'Production', 'No deliveries yet'],
    ['/members', 'Members', 'viewer-'],
  ] as const) {
    await open(path, title)
    await page.getByText(seen).first().waitFor()
    const names = await page
      .locator('main button')
      .evaluateAll((buttons) =>
        (buttons as unknown as { innerText: string; ariaLabel: string | null }[]).map(
          ({ innerText, ariaLabel }) => ariaLabel ?? innerText,
        ),
      )
    const refused = names.filter((name) => /^(?:New|Invite|Send a test|More$)/.test(name))
    assert.deepEqual(refused, [], path)
    assert.deepEqual(await audit(), [])
  }
  await open('/audit', 'Audit log')
  await page.getByText('Viewers cannot see the audit log').waitFor()
  assert.deepEqual(complaints, [])
})
