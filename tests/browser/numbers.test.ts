// The page of numbers and the captured mail, in a real browser: sent mail is counted, and shown as it would have arrived.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, test } from 'node:test'
import { chromiumMissing } from '../support/chromium.ts'
import { openPages } from '../support/dashboard.ts'
import { makePlace, startNode } from '../support/node.ts'
import { until } from '../support/until.ts'

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)
const skip = chromiumMissing ?? false

test('the numbers count sent mail, and captured mail is shown as its recipient would see it', {
  skip,
}, async (t) => {
  const node = await startNode(await makePlace(t))
  const { api, organizationId } = await node.createCaller()
  const inbox = await api.createInbox()
  const pages = await openPages(t, node, organizationId)
  const { page } = pages
  await page.emulateMedia({ reducedMotion: 'reduce' })
  const text = (wanted: string | RegExp) => page.getByText(wanted).first().waitFor()
  const press = (name: string) => page.getByRole('button', { name, exact: true }).first().click()
  await page.goto('/captured')
  await text('No captured mail yet')
  assert.deepEqual(await pages.audit(), [])
  await api.want(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    idempotencyKey: 'booking-1',
    status: 202,
    body: {
      to: [{ email: 'ada@example.com', name: 'Ada' }],
      subject: 'Your booking',
      text: 'See https://example.com/1 for all.',
      html: '<h1>Confirmed</h1><img src="https://example.com/pixel.png">',
      attachments: [{ filename: 'terms.txt', contentType: 'text/plain', content: 'VGVybXMu' }],
    },
  })
  // It appears without a reload.
  await page.getByRole('link', { name: /Your booking/ }).click()
  await page.frameLocator('iframe').getByRole('heading', { name: 'Confirmed' }).waitFor()
  await text('Load image')
  await text('terms.txt')
  assert.deepEqual(await pages.audit(), [])
  await press('Text')
  assert.equal(
    await page.getByRole('link', { name: 'https://example.com/1' }).getAttribute('rel'),
    'noopener noreferrer',
  )
  await press('Source')
  await text(/DKIM-Signature: v=1/)
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Download .eml' }).click(),
  ])
  assert.match(readFileSync(await file.path(), 'utf8'), /^Subject: Your booking\r$/m)

  await until('the numbers', async () => {
    const { totals } = await api.want<{ totals: { delivered: number } }>('/v1/metrics/delivery')
    return totals.delivered === 1
  })
  await pages.open('/numbers', 'Analytics')
  await page.getByRole('button', { name: /Delivered 1/ }).waitFor()
  await page.getByRole('button', { name: /Failed 0/ }).waitFor()
  await text('100 %')
  await text('example.com')
  assert.deepEqual(await pages.audit(), [])
  await page.getByText('Show as a table').click()
  const table = page.getByRole('table', { name: /Mail over time/ })
  assert.equal(await table.getByRole('row').count(), 25)
  await press('30 days')
  await text('Daily (UTC); the current hour is incomplete.')
  assert.equal(new URL(page.url()).search, '?hours=720')
  await text('30 days have no comparison')
  const used = await page
    .getByRole('progressbar', { name: 'Inboxes', exact: true })
    .getAttribute('aria-valuenow')
  assert.equal(used, '1')
  assert.deepEqual(pages.complaints, [])
})
