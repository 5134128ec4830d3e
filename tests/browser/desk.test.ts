// The operator's desk in a real browser: opening it by link, approving an organization, pausing a queue, also by keyboard.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { chromiumMissing } from '../support/chromium.ts'
import { deskLink, openWindow, startWithQueue } from '../support/desk-window.ts'
import { startPosthorn } from '../support/service.ts'

const skip = chromiumMissing ?? false

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)

test('the operator opens the desk by its link and steers the service', { skip }, async (t) => {
  const posthorn = await startWithQueue(t)
  await posthorn.cli(['org', 'create', '--name', 'Harbor & Sons'])
  const window = await openWindow(t, await deskLink(posthorn), 1280)
  const { page, complaints, outside } = window
  const heading = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor()

  await heading('Approvals')
  assert.equal(new URL(page.url()).hash, '#/approvals')
  await page.getByLabel('Grant server keys').check()
  await page.getByRole('button', { name: 'Approve: Harbor & Sons' }).click()
  await page.getByText('Harbor & Sons is approved').waitFor()
  await page.getByText('No pending requests').waitFor()
  const { organizations } = await posthorn.cli<{
    organizations: { name: string; status: string; serverKeys: boolean }[]
  }>(['org', 'list'])
  const harbor = organizations.find(({ name }) => name === 'Harbor & Sons')
  assert.deepEqual([harbor?.status, harbor?.serverKeys], ['active', true])

  await page.keyboard.press('g')
  await page.keyboard.press('q')
  await heading('Queues')
  await page.getByRole('link', { name: /@capture/ }).waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await heading('@capture')
  await page.getByText('ada@far.test').waitFor()
  const stateOf = async () => (await posthorn.cli<{ paused: boolean }>(['queue', 'show', '@capture'])).paused
  await page.getByRole('button', { name: 'Resume' }).press('Enter')
  await page.getByText('@capture is running again').waitFor()
  assert.equal(await stateOf(), false)
  await page.getByRole('button', { name: 'Pause' }).press('Enter')
  await page.getByText('@capture is paused').waitFor()
  assert.equal(await stateOf(), true)
  assert.deepEqual([complaints, outside], [[], []])
})

test('the operator limits an organization, and deletes it only after typing its name', {
  skip,
}, async (t) => {
  const posthorn = await startPosthorn(t)
  const { id } = await posthorn.cli<{ id: string }>(['org', 'create', '--name', 'Quiet Fox', '--active'])
  const { page, complaints } = await openWindow(t, await deskLink(posthorn), 1280)
  await page.getByRole('link', { name: 'Quiet Fox' }).click()
  await page.getByRole('button', { name: 'Change limits' }).click()
  await page.getByRole('textbox', { name: 'Messages per minute' }).fill('7')
  await page.getByLabel('Members can create server keys').check()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Limits changed').waitFor()
  await page.getByText('Granted', { exact: true }).waitFor()
  const shown = await posthorn.cli<{ limits: Record<string, number>; serverKeys: boolean }>([
    ...['org', 'show', id],
  ])
  assert.deepEqual([shown.limits['messagesPerMinute'], shown.serverKeys], [7, true])
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  const remove = page.getByRole('button', { name: 'Delete' })
  assert.equal(await remove.isDisabled(), true)
  await page.getByLabel('Type Quiet Fox to confirm').fill('Quiet Fox')
  await remove.click()
  await page.getByText('Organization deleted').waitFor()
  await page.getByRole('heading', { level: 1, name: 'Organizations' }).waitFor()
  await assert.rejects(posthorn.cli(['org', 'show', id]), /there is no organization/)
  assert.deepEqual(complaints, [])
})

test('a used link says so, and the menu closes the desk', { skip }, async (t) => {
  const posthorn = await startPosthorn(t)
  const url = await deskLink(posthorn)
  const { page } = await openWindow(t, url, 1280)
  await page.getByRole('heading', { level: 1, name: 'Organizations' }).waitFor()
  await page.getByRole('button', { name: 'Theme, shortcuts and close' }).click()
  await page.getByRole('menuitem', { name: 'Close the desk' }).click()
  await page.getByRole('heading', { name: 'Open the desk' }).waitFor()
  await page.goto(url)
  await page.getByText(/The link was already used/).waitFor()
  await page.goto(await deskLink(posthorn))
  await page.getByRole('heading', { level: 1, name: 'Organizations' }).waitFor()
})
