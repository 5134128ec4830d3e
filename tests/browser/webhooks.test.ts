// The pages of webhooks, in a real browser: an endpoint is made, tested, changed, given a new secret, and deleted.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { before, test } from 'node:test'
import { promisify } from 'node:util'
import { verification } from '../../dashboard/src/pages/webhooks/verification.ts'
import { chromiumMissing } from '../support/chromium.ts'
import { openPages } from '../support/dashboard.ts'
import { freePort } from '../support/free-port.ts'
import { makePlace, startNode } from '../support/node.ts'
import { inherited } from '../support/service.ts'
import { until } from '../support/until.ts'
import { startReceiver, verifyCall } from '../support/webhook-receiver.ts'

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)
const skip = chromiumMissing ?? false

interface Webhook {
  id: string
  url: string
  status: string
  eventTypes: string[] | null
  description: string | null
}

test('a person makes an endpoint, calls, replays, changes, renews its secret, and deletes it', {
  skip,
}, async (t) => {
  const node = await startNode(await makePlace(t))
  const receiver = await startReceiver(t)
  const { api, organizationId } = await node.createCaller()
  const pages = await openPages(t, node, organizationId)
  const { page } = pages
  await page.emulateMedia({ reducedMotion: 'reduce' })
  const text = (wanted: string | RegExp) => page.getByText(wanted).first().waitFor()
  const press = (name: string) => page.getByRole('button', { name, exact: true }).first().click()
  const listed = async () => (await api.want<{ webhooks: Webhook[] }>('/v1/webhooks')).webhooks
  await pages.open('/webhooks', 'Webhooks')
  await text('Get notified of events')
  assert.equal(await page.getByRole('button', { name: 'New endpoint', exact: true }).count(), 1)
  assert.deepEqual(await pages.audit(), [])

  await press('New endpoint')
  await press('Create endpoint')
  await text('Enter the URL of your endpoint.')
  await page.getByLabel('URL').fill('ftp://app.example.com')
  await press('Create endpoint')
  await text('URL: must begin with https://')
  await page.getByLabel('URL').fill(receiver.url('/hooks'))
  await page.getByLabel('Selected events').check()
  await page.getByLabel('message.sent').check()
  await page.getByLabel('Description').fill('Production')
  assert.deepEqual(await pages.audit(), [])
  await page.keyboard.press('Enter')
  await text('This is shown only once')
  const secret = await page.locator('code', { hasText: 'whsec_' }).first().innerText()
  await page.keyboard.press('Escape')
  await text('Have you copied the signing secret?')
  assert.deepEqual(await pages.audit(), [])
  await press('Close anyway')
  await page.getByRole('heading', { level: 1, name: 'Production' }).waitFor()
  const [made] = await listed()
  assert.deepEqual(made!.eventTypes, ['message.received', 'message.bounced', 'message.sent'])

  receiver.answer('/hooks', (response) => response.writeHead(503).end('the database restarts'))
  await press('Send test')
  await text('Pending retry')
  verifyCall(secret, receiver.callsOf('/hooks')[0]!)
  await page.setViewportSize({ width: 390, height: 844 })
  await pages.open('/webhooks', 'Webhooks')
  await page.getByRole('listitem').getByText('Pending retry').waitFor()
  await page.setViewportSize({ width: 1280, height: 900 })
  await page.getByRole('link', { name: 'Production' }).click()
  await page.getByRole('button', { name: /webhook\.test/ }).click()
  await text('Your program failed during the call. Check its log.')
  await text('the database restarts')
  assert.deepEqual(await pages.audit(), [])
  receiver.answer('/hooks', (response) => response.writeHead(204).end())
  await press('Replay')
  await text('Your endpoint returned 2xx and accepted the event.')
  await press('Close')

  await press('More')
  await page.getByRole('menuitem', { name: 'Edit' }).click()
  await page.getByLabel('All events').check()
  await press('Save')
  await text('The endpoint is saved.')
  assert.equal((await listed())[0]!.eventTypes, null)
  await press('More')
  await page.getByRole('menuitem', { name: 'Rotate secret' }).click()
  await press('Create new secret')
  await text('New signing secret')
  const rotated = await page.locator('code', { hasText: 'whsec_' }).first().innerText()
  await press('I have copied it')
  await press('Send test')
  const both = await until('the call with two signatures', () =>
    receiver.callsOf('/hooks').find(({ headers }) => headers['webhook-signature']?.includes(' ')),
  )
  for (const one of [secret, rotated]) verifyCall(one, both)

  await press('More')
  await page.getByRole('menuitem', { name: 'Disable' }).click()
  await text('This endpoint is disabled and is not called')
  assert.equal((await listed())[0]!.status, 'disabled')
  assert.equal(await page.getByRole('button', { name: 'Send test' }).getAttribute('aria-disabled'), 'true')
  assert.deepEqual(await pages.audit(), [])
  await press('More')
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await page.getByLabel(/Type 127/).fill(`127.0.0.1:${receiver.port}`)
  await press('Delete endpoint')
  await text('Get notified of events')
  assert.deepEqual(await listed(), [])
  // The test caused exactly one refusal.
  assert.equal(pages.complaints.length, 1, pages.complaints.join('\n'))
  assert.match(pages.complaints[0]!, /a status of 400 \(Bad Request\)/)
})

test('the example programs verify a call unchanged', async (t) => {
  const port = await freePort()
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const env = { ...inherited(), WEBHOOK_SECRET: secret }
  const at = (code: string | undefined) => code!.replaceAll('3000', String(port))
  const receiving = spawn(
    process.execPath,
    ['--input-type=module-typescript', '-e', at(verification['TypeScript'])],
    {
      env,
      cwd: resolve(import.meta.dirname, '../..'),
      stdio: 'ignore',
    },
  )
  t.after(async () => {
    receiving.kill()
    if (receiving.exitCode === null && receiving.signalCode === null) await once(receiving, 'exit')
  })
  const call = (more: Record<string, string>) =>
    promisify(execFile)('bash', ['-c', `${at(verification['curl'])}`], { env: { ...env, ...more } })
  const { stdout } = await until('the receiver', () => call({}).catch(() => null))
  assert.match(stdout, /^HTTP\/1\.1 204/)
  const forged = await call({ WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 8).toString('base64')}` })
  assert.match(forged.stdout, /^HTTP\/1\.1 400/)
})
