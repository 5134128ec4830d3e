// The pages of domains, in a real browser: a domain is added, its records found, its keys changed, and it is deleted.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, test } from 'node:test'
import { chromiumMissing } from '../support/chromium.ts'
import { type Domain, publish, registerDomain } from '../support/customer-domain.ts'
import { openPages } from '../support/dashboard.ts'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, startNode } from '../support/node.ts'
import { until } from '../support/until.ts'

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)
const skip = chromiumMissing ?? false

test('a person adds a domain, sees its records found, changes its keys and deletes it', {
  skip,
}, async (t) => {
  const dns = await DnsServer.start({})
  t.after(() => dns.close())
  const env = { POSTHORN_DNS: dns.address, POSTHORN_MAIL_HOST: 'mx.posthorn.test' }
  const node = await startNode(await makePlace(t), { env })
  const { api, organizationId } = await node.createCaller()
  const pages = await openPages(t, node, organizationId)
  const { page } = pages
  // Without transitions, so that axe checks the final colors of a theme.
  await page.emulateMedia({ reducedMotion: 'reduce' })
  const text = (wanted: string | RegExp) => page.getByText(wanted).first().waitFor()
  await pages.open('/domains', 'Domains')
  await text('No domains yet')
  assert.deepEqual(await pages.audit(), [])
  await page.getByRole('button', { name: 'Add a domain' }).click()
  await page.getByLabel('Domain', { exact: true }).fill('Bücher.example')
  await text('In DNS this is xn--bcher-kva.example.')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'bücher.example' }).waitFor()
  const [domain] = (await api.want<{ domains: Domain[] }>('/v1/domains')).domains
  assert.equal(domain!.domain, 'xn--bcher-kva.example')
  await page.getByRole('button', { name: 'Check now' }).click()
  await text('0 of 6 required records are valid.')
  await text(/Next check in/)
  assert.deepEqual(await pages.audit(), [])
  publish(dns, domain!, ['outbound', 'inbound'])
  await page.getByRole('button', { name: 'Check now' }).click()
  await text('All required records are valid.')
  await text('Inboxes and the API can send from every address of this domain.')
  await text('Mail to this domain arrives in its inboxes.')
  const [zone] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download' }).click(),
  ])
  assert.equal(zone.suggestedFilename(), 'xn--bcher-kva.example.zone')
  assert.match(
    readFileSync(await zone.path(), 'utf8'),
    /_posthorn-challenge\.xn--bcher-kva\.example\. 3600 IN TXT/,
  )
  await page.getByRole('button', { name: 'Rotate keys' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate keys' }).click()
  await text('The old keys sign until the records of the new keys are valid.')
  const rotated = await api.want<Domain>(`/v1/domains/${domain!.id}`)
  assert.equal(rotated.records.filter(({ purpose }) => purpose === 'dkim').length, 4)
  assert.deepEqual(await pages.audit(), [])
  await page.getByRole('button', { name: 'Delete domain' }).click()
  const dialog = page.getByRole('dialog')
  assert.ok(await dialog.getByRole('button', { name: 'Delete domain' }).isDisabled())
  await dialog.getByLabel(/Type xn--bcher-kva.example/).fill('xn--bcher-kva.example')
  await dialog.getByRole('button', { name: 'Delete domain' }).click()
  await text('No domains yet')
  assert.deepEqual((await api.want<{ domains: Domain[] }>('/v1/domains')).domains, [])
  assert.deepEqual(pages.complaints, [])
})

test('a page shows the record found in DNS next to the expected one, and checks again by itself', {
  skip,
}, async (t) => {
  const dns = await DnsServer.start({})
  t.after(() => dns.close())
  const node = await startNode(await makePlace(t), {
    env: { POSTHORN_DNS: dns.address, POSTHORN_MAIL_HOST: 'mx.posthorn.test' },
  })
  const { api, organizationId } = await node.createCaller()
  const domain = await registerDomain(api, 'shop.example')
  publish(dns, domain, ['outbound'])
  dns.set('bounce.shop.example', { MX: [[10, 'mx.elsewhere.test']], TXT: ['v=spf1 -all'] })
  const pages = await openPages(t, node, organizationId, { width: 390, height: 844 })
  const { page } = pages
  // Without transitions, so that axe checks the final colors of a theme.
  await page.emulateMedia({ reducedMotion: 'reduce' })
  await page.clock.install()
  await pages.open(`/domains/${domain.id}`, 'shop.example')
  // An unverified domain has no traffic.
  assert.equal(await page.getByRole('heading', { name: 'Traffic', exact: true }).count(), 0)
  await page.getByRole('button', { name: 'Check now' }).click()
  await page.getByText('10 mx.elsewhere.test').or(page.getByText('mx.elsewhere.test')).first().waitFor()
  assert.deepEqual(await pages.audit(), [])
  publish(dns, domain, ['outbound', 'inbound'])
  await page.clock.runFor(16_000)
  await until('it to look again', async () => {
    const { status } = (await api.want<Domain>(`/v1/domains/${domain.id}`)).capabilities.outbound
    return status === 'verified'
  })
  await page.getByText('All required records are valid.').waitFor()
  await page.getByRole('heading', { name: 'Traffic', exact: true }).waitFor()
  assert.deepEqual(pages.complaints, [])
})
