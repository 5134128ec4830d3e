// The pages of suppressions and of validation, in a real browser: single addresses, uploaded lists, and downloads.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, test } from 'node:test'
import type { Api } from '../support/api.ts'
import { chromiumMissing } from '../support/chromium.ts'
import { openPages, type Pages } from '../support/dashboard.ts'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, startNode } from '../support/node.ts'
import { type Scope, until } from '../support/until.ts'

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)
const skip = chromiumMissing ?? false

async function setStage(t: Scope): Promise<{ api: Api; pages: Pages }> {
  const dns = await DnsServer.start({
    'far.test': { MX: [[10, 'mx.far.test']] },
    'mx.far.test': { A: ['192.0.2.7'] },
  })
  t.after(() => dns.close())
  const node = await startNode(await makePlace(t), {
    env: { POSTHORN_DNS: dns.address, POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true' },
  })
  const { api, organizationId } = await node.createCaller()
  return { api, pages: await openPages(t, node, organizationId) }
}

async function suppressed(api: Api): Promise<string[]> {
  const { suppressions } = await api.want<{ suppressions: { email: string }[] }>('/v1/suppressions?limit=100')
  return suppressions.map(({ email }) => email).sort()
}

test('a person suppresses, finds, removes and exports addresses, and the export has no formulas', {
  skip,
}, async (t) => {
  const { api, pages } = await setStage(t)
  const { page } = pages
  await page.emulateMedia({ reducedMotion: 'reduce' })
  await pages.open('/suppressions', 'Suppressions')
  await page.getByText('No suppressed addresses').waitFor()
  assert.deepEqual(await pages.audit(), [])
  await page.getByRole('button', { name: 'Add address' }).click()
  await page.getByLabel('Address', { exact: true }).fill('=cmd@far.test')
  await page.keyboard.press('Enter')
  await page.getByText('=cmd@far.test is suppressed.').waitFor()
  await page.getByRole('button', { name: 'Import' }).click()
  const lines = [
    'name;email;reason;date',
    'Ada;ada@far.test;HardBounce;2026-01-01',
    'Ada again;ADA@far.test;;',
    'Nobody;nonsense;;',
    'Grace;grace@far.test;=Blocked by policy;',
  ]
  await page.locator('input[type=file]').setInputFiles({
    name: 'list.csv',
    mimeType: 'text/csv',
    buffer: Buffer.from(lines.join('\r\n')),
  })
  await page.getByText('2 addresses', { exact: true }).waitFor()
  await page
    .getByText('The address does not exist: 1 · Added manually: 1 · With a date: 1 · With a note: 1')
    .waitFor()
  await page.getByText('1 duplicate skipped').waitFor()
  await page.getByText('1 line without an address skipped').waitFor()
  await page.getByText('Nobody;nonsense;;').last().waitFor()
  assert.deepEqual(await pages.audit(), [])
  await page.getByRole('button', { name: 'Suppress 2 addresses' }).click()
  await page.getByText('Done.').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).last().click()
  assert.deepEqual(await suppressed(api), ['=cmd@far.test', 'ada@far.test', 'grace@far.test'])
  await page.getByText('grace@far.test', { exact: true }).waitFor()
  await page.getByText('=Blocked by policy').last().waitFor()
  assert.deepEqual(await pages.audit(), [])
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Export' }).click(),
  ])
  assert.match(readFileSync(await file.path(), 'utf8'), /^email,reason,submissionId,createdAt,note\r\n/)
  assert.match(
    readFileSync(await file.path(), 'utf8'),
    /^ada@far\.test,hard_bounce,,2026-01-01T00:00:00\.000Z,\r$/m,
  )
  assert.match(readFileSync(await file.path(), 'utf8'), /^grace@far\.test,manual,.*,'=Blocked by policy\r$/m)
  assert.match(readFileSync(await file.path(), 'utf8'), /^'=cmd@far\.test,manual,/m)
  await page.getByLabel('Find an address').fill('joe@far.test')
  await page.getByText('joe@far.test is not suppressed. You can send to it.').waitFor()
  await page.getByLabel('Find an address').fill('ada')
  await page.getByRole('button', { name: 'Remove ada@far.test' }).click()
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByRole('button', { name: 'Remove ada@far.test' }).click()
  await page.getByRole('button', { name: 'Dismiss' }).last().click()
  await until('it to be removed', async () => !(await suppressed(api)).includes('ada@far.test'))
  assert.deepEqual(pages.complaints, [])
})

test('validation explains one address check by check, and judges a list with progress and download', {
  skip,
}, async (t) => {
  const { pages } = await setStage(t)
  const { page } = pages
  await page.emulateMedia({ reducedMotion: 'reduce' })
  await pages.open('/validation', 'Address check')
  await page.getByLabel('Address', { exact: true }).fill('ada@gmail.con')
  await page.keyboard.press('Enter')
  await page.getByText('Undeliverable: mail to it would not arrive').waitFor()
  await page.getByRole('button', { name: 'Use ada@gmail.com' }).waitFor()
  assert.deepEqual(await pages.audit(), [])
  await page.getByLabel('Address', { exact: true }).fill('info@far.test')
  await page.keyboard.press('Enter')
  await page.getByText('This is a role address').waitFor()
  await page.getByText('The domain has a mail server').waitFor()
  await page.getByRole('tab', { name: 'List' }).click()
  const lines = Array.from({ length: 250 }, (_, index) => `reader${index}@far.test`)
  await page
    .getByLabel('Or paste addresses, one per line')
    .fill([...lines, 'nonsense', 'info@far.test'].join('\n'))
  await page.getByRole('button', { name: 'Check 252 addresses' }).click()
  await page.getByText('Done.').waitFor()
  await page.getByRole('button', { name: 'Deliverable 250' }).waitFor()
  assert.deepEqual(await pages.audit(), [])
  await page.getByRole('button', { name: 'Undeliverable 1' }).click()
  await page.getByText('This is not a valid email address.').waitFor()
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download CSV' }).click(),
  ])
  const rows = readFileSync(await file.path(), 'utf8')
    .trim()
    .split('\r\n')
  assert.equal(rows.length, 253)
  assert.match(rows[1]!, /^1,reader0@far\.test,reader0@far\.test,deliverable,accepted,,mx\.far\.test$/)
  assert.deepEqual(pages.complaints, [])
})
