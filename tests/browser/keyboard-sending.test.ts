// Sending by keys alone: the list of sent mail, cancelling, suppressions, validation, domains, numbers.
import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import type { Api, Submission } from '../support/api.ts'
import { chromiumMissing } from '../support/chromium.ts'
import { type Domain, publish } from '../support/customer-domain.ts'
import { launchBrowser, signInAddress, urlOfListener } from '../support/dashboard.ts'
import { type FarSide, startFarSide } from '../support/far-side.ts'
import { Keyboard } from '../support/keyboard.ts'
import { assertAllDone } from '../support/keyboard-deeds.ts'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import { until } from '../support/until.ts'

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)
const skip = chromiumMissing ?? false

interface Stage {
  keys: Keyboard
  api: Api
  far: FarSide
}

async function setStage(t: TestContext): Promise<Stage> {
  const far = await startFarSide(t)
  const node = await startNode(await makePlace(t), {
    env: { ...far.env, POSTHORN_MAIL_HOST: 'mx.posthorn.test' },
  })
  const { api, organizationId } = await node.createCaller()
  const keys = await Keyboard.open(await launchBrowser(t), urlOfListener(node))
  await keys.open(await signInAddress(node, organizationId))
  await keys.title('Send your first email')
  return { keys, api, far }
}

async function followAndCancel({ keys, api }: Stage): Promise<void> {
  const inbox = await api.createInbox('desk')
  await untilStates(api, (await send(api, inbox, ['ada@plain.far.test'])).submission.id, 'delivered')
  const { submission } = await send(api, inbox, ['grace@full.far.test'])
  await untilStates(api, submission.id, 'deferred')
  await keys.press('g', 's')
  await keys.has('link', /ada@plain\.far\.test/)
  await keys.select('State', 'Delivered')
  await until('the filter', () => keys.address() === '/sending?status=delivered')
  await keys.use('button', 'Clear filters')
  await keys.select('Time', 'Last 24 hours')
  await keys.select('Search by', 'Sender inbox')
  await keys.fill('Sender inbox', inbox.address)
  await keys.press('Enter')
  await until('the inbox', () => keys.address().includes(inbox.id))
  await keys.select('Search by', 'Recipient')
  await keys.fill('Recipient', 'grace@full.far.test')
  await keys.press('Enter')
  await until('the recipient', () => keys.address().includes('recipient='))
  await keys.use('link', /grace@full\.far\.test/)
  await keys.title('Test')
  await keys.use('button', 'Cancel pending delivery')
  await keys.has('dialog', 'Cancel the remaining deliveries?')
  await keys.press('Escape')
  await keys.closed()
  await keys.stands('button', 'Cancel pending delivery')
  await keys.press('Enter')
  await keys.to('button', 'Keep delivering')
  await keys.use('button', 'Cancel pending delivery')
  await until('it to be cancelled', async () => {
    const { recipients } = await api.want<Submission>(`/v1/submissions/${submission.id}`)
    return recipients[0]!.status === 'failed'
  })
  await keys.closed()
  await keys.use('link', 'Sending', 'Shift+Tab')
  await keys.title('Sending')
}

async function suppressed(api: Api): Promise<string[]> {
  const { suppressions } = await api.want<{ suppressions: { email: string }[] }>('/v1/suppressions')
  return suppressions.map(({ email }) => email).sort()
}

async function suppress({ keys, api }: Stage): Promise<void> {
  await keys.press('g', 'u')
  await keys.title('Suppressions')
  await keys.use('button', 'Add address')
  await keys.stands('textbox', 'Address')
  await keys.type('joe@far.test')
  await keys.press('Enter')
  await keys.sees('joe@far.test is suppressed.')
  await keys.stands('button', 'Add address')
  await keys.use('button', 'Import', 'Shift+Tab')
  await keys.toFile(/Choose a file/)
  await keys.give({ name: 'list.csv', text: 'email\nada@far.test\n' })
  await keys.sees('1 address')
  await keys.fill('Or paste addresses, one per line', 'ada@far.test grace@far.test'.replace(' ', '\n'))
  await keys.use('button', 'Suppress 2 addresses')
  await keys.sees('Done.')
  await keys.press('Escape')
  await keys.closed()
  await keys.stands('button', 'Import')
  await until('three to be suppressed', async () => (await suppressed(api)).length === 3)
  assert.deepEqual(await suppressed(api), ['ada@far.test', 'grace@far.test', 'joe@far.test'])
  const file = await keys.download('button', 'Export')
  assert.match(file.text, /^joe@far\.test,manual,/m)
  await keys.fill('Find an address', 'ada')
  await keys.use('button', 'Remove ada@far.test')
  await keys.press('z')
  await keys.use('button', 'Remove ada@far.test')
  await keys.use('button', 'Dismiss', 'Shift+Tab')
  await until('it to be removed', async () => !(await suppressed(api)).includes('ada@far.test'))
  await keys.use('link', 'Complaints')
  await keys.title('Complaints')
}

async function validate({ keys }: Stage): Promise<void> {
  await keys.press('g', 'v')
  await keys.title('Address check')
  await keys.fill('Address', 'ada@gmail.con')
  await keys.press('Enter')
  await keys.sees('Undeliverable: mail to it would not arrive')
  await keys.use('button', 'Use ada@gmail.com')
  await keys.to('tab', 'One address', 'Shift+Tab')
  await keys.press('ArrowRight')
  await keys.fill('Or paste addresses, one per line', 'info@plain.far.test\nnonsense')
  await keys.use('button', 'Check 2 addresses')
  await keys.sees('Done.')
  const file = await keys.download('button', 'Download CSV')
  assert.match(file.text, /info@plain\.far\.test/)
  await keys.use('button', 'Undeliverable 1')
  await keys.sees('This is not a valid email address.')
  await keys.use('button', 'Check another list', 'Shift+Tab')
}

async function useDomain({ keys, api, far }: Stage): Promise<void> {
  const listed = async () => (await api.want<{ domains: Domain[] }>('/v1/domains')).domains
  await keys.press('g', 'd')
  await keys.title('Domains')
  await keys.use('button', 'Add a domain')
  await keys.stands('textbox', 'Domain')
  await keys.type('shop.example')
  await keys.press('Enter')
  await keys.title('shop.example')
  const [domain] = await listed()
  await keys.use('button', 'Check now')
  await keys.use('button', 'Stop checking')
  await keys.stands('button', 'Check now')
  publish(far.dns, domain!, ['outbound', 'inbound'])
  await keys.press('Enter')
  await keys.sees('All required records are valid.')
  await keys.use('button', /Copy Value/)
  assert.ok(domain!.records.some(({ value }) => value))
  const copied = await keys.clipboard()
  assert.ok(
    domain!.records.some(({ value }) => value === copied),
    copied,
  )
  const zone = await keys.download('button', 'Download')
  assert.equal(zone.name, 'shop.example.zone')
  await keys.unfold('Show zone file')
  await keys.has('region', 'Zone file')
  await keys.use('button', 'Rotate keys')
  await keys.has('dialog', 'Rotate keys')
  await keys.use('button', 'Rotate keys')
  await keys.closed()
  const rotated = await api.want<Domain>(`/v1/domains/${domain!.id}`)
  assert.equal(rotated.records.filter(({ purpose }) => purpose === 'dkim').length, 4)
  await keys.use('button', 'Delete domain', 'Shift+Tab')
  await keys.stands('textbox', 'Type shop.example to confirm')
  await keys.type('shop.example')
  await keys.use('button', 'Delete domain')
  await keys.sees('No domains yet')
  assert.deepEqual(await listed(), [])
}

async function readNumbers({ keys }: Stage): Promise<void> {
  await keys.press('g', 'n')
  await keys.title('Analytics')
  await keys.use('button', '30 days')
  await until('the span', () => keys.address() === '/numbers?hours=720')
  await keys.unfold('Show as a table')
  await keys.has('table', /as a table/)
  await keys.press('g', 'o')
  await keys.use('link', 'All sends')
  await keys.title('Sending')
}

test('a person steers sends, suppressions, validation and domains by keys alone', { skip }, async (t) => {
  const stage = await setStage(t)
  await followAndCancel(stage)
  await suppress(stage)
  await validate(stage)
  await useDomain(stage)
  await readNumbers(stage)
  assertAllDone('sending', stage.keys)
  stage.keys.assertClean()
})
