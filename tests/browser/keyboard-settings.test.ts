// Settings by keys alone: API keys, webhooks, members, the audit log, and the settings of a person.
import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import type { Api } from '../support/api.ts'
import { chromiumMissing } from '../support/chromium.ts'
import { launchBrowser, signInAddress, signInAs, urlOfListener } from '../support/dashboard.ts'
import { Keyboard } from '../support/keyboard.ts'
import { assertAllDone } from '../support/keyboard-deeds.ts'
import { makePlace, startNode } from '../support/node.ts'
import { until } from '../support/until.ts'
import { startReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)
const skip = chromiumMissing ?? false

interface Stage {
  keys: Keyboard
  api: Api
  base: string
  receiver: WebhookReceiver
  /** Opens the pages as a new person, in a window of their own. */
  open(role?: 'owner' | 'member' | 'viewer'): Promise<Keyboard>
}

async function setStage(t: TestContext): Promise<Stage> {
  const node = await startNode(await makePlace(t))
  const receiver = await startReceiver(t)
  const { api, organizationId } = await node.createCaller()
  const browser = await launchBrowser(t)
  // A passkey needs a host name. An IP address does not work.
  const base = urlOfListener(node).replace('127.0.0.1', 'localhost')
  const open = async (role: 'owner' | 'member' | 'viewer' = 'owner') => {
    const keys = await Keyboard.open(browser, base, { hasPasskeys: true })
    await keys.open(await signInAddress(node, organizationId, role))
    await keys.title(/Overview|Send your first/)
    return keys
  }
  await signInAs(node, organizationId, 'member')
  return { keys: await open(), api, base, receiver, open }
}

/** Asks the API as the page does. */
const ask = <Body>(keys: Keyboard, path: string) =>
  keys.look<Body>(`fetch('/app/v1${path}').then((answer) => answer.json())`)

async function useKeys({ keys, base }: Stage): Promise<void> {
  const statusOf = async (secret: string) =>
    (await fetch(`${base}/v1/me`, { headers: { 'x-api-key': secret } })).status
  await keys.press('g', 'k')
  await keys.use('button', 'New key')
  await keys.stands('textbox', 'Name')
  await keys.type('Booking')
  await keys.select('Expires in', '7 days')
  await keys.choose('Everything')
  await keys.unfold('Details')
  await keys.check('Manage webhooks')
  await keys.use('button', 'Create key')
  await keys.use('button', 'Copy the API key')
  const secret = await keys.clipboard()
  assert.equal(await statusOf(secret), 200)
  await keys.use('button', 'I have copied it')
  await keys.closed()
  await keys.stands('button', 'New key')
  await keys.use('button', /^Booking/)
  await keys.use('button', 'Rotate')
  await keys.stands('textbox', 'Name of the new key')
  await keys.press('Control+a')
  await keys.type('Booking 2')
  await keys.press('Enter')
  await keys.use('button', 'Copy the API key')
  const next = await keys.clipboard()
  await keys.use('button', 'I have stored it')
  await keys.use('button', 'Continue without waiting')
  await keys.use('button', 'Revoke old key')
  await keys.sees('The key is revoked.')
  assert.deepEqual([await statusOf(secret), await statusOf(next)], [401, 200])
  await keys.use('button', /^Booking 2/)
  await keys.use('button', 'Revoke')
  await keys.stands('textbox', 'Type Booking 2 to confirm')
  await keys.type('Booking 2')
  await keys.use('button', 'Revoke key')
  await keys.closed()
  assert.equal(await statusOf(next), 401)
  await keys.use('button', 'All')
  await keys.has('button', /^Booking/)
}

async function useWebhooks({ keys, api, receiver }: Stage): Promise<void> {
  type Listed = { id: string; status: string; eventTypes: string[] | null }
  const listed = async () => (await api.want<{ webhooks: Listed[] }>('/v1/webhooks')).webhooks
  await keys.press('g', 'w')
  await keys.use('button', 'New endpoint')
  await keys.stands('textbox', 'URL')
  await keys.type(receiver.url('/hooks'))
  await keys.choose('Selected events')
  await keys.check('message.sent')
  await keys.fill('Description', 'Production')
  await keys.press('Enter')
  await keys.use('button', 'Copy the signing secret')
  assert.match(await keys.clipboard(), /^whsec_/)
  await keys.use('button', 'Open endpoint')
  await keys.title('Production')
  assert.deepEqual((await listed())[0]!.eventTypes?.length, 3)
  await keys.use('button', 'Send test')
  await until('the test', () => receiver.callsOf('/hooks').length === 1)
  await keys.stands('button', 'Send test')
  await keys.use('button', /webhook\.test/)
  await keys.use('button', 'Replay')
  await until('the replay', () => receiver.callsOf('/hooks').length === 2)
  await keys.press('Escape')
  await keys.closed()
  await keys.stands('button', /webhook\.test/)
  await keys.take('More', 'Edit', 'Shift+Tab')
  await keys.choose('All events')
  await keys.use('button', 'Save')
  await keys.sees('The endpoint is saved.')
  await keys.closed()
  await keys.stands('button', 'More')
  assert.equal((await listed())[0]!.eventTypes, null)
  await keys.take('More', 'Rotate secret')
  await keys.use('button', 'Create new secret')
  await keys.use('button', 'I have copied it')
  await keys.closed()
  await keys.take('More', 'Disable')
  await keys.sees('This endpoint is disabled and is not called')
  await keys.take('More', 'Enable')
  await until('it to be called again', async () => (await listed())[0]!.status === 'active')
  await keys.take('More', 'Delete')
  await keys.stands('textbox', /^Type localhost|^Type 127/)
  await keys.type(`127.0.0.1:${receiver.port}`)
  await keys.use('button', 'Delete endpoint')
  await keys.sees('Get notified of events')
  assert.deepEqual(await listed(), [])
}

interface MemberList {
  members: { email: string; role: string }[]
  invitations: unknown[]
}

async function useMembers({ keys }: Stage): Promise<void> {
  const listed = () => ask<MemberList>(keys, '/members')
  await keys.use('link', 'Members')
  await keys.use('button', 'Invite')
  await keys.type('grace@people.test')
  await keys.choose('Viewer')
  await keys.use('button', 'Send invitation')
  await keys.sees('Open invitations')
  await keys.stands('button', 'Invite')
  await keys.use('button', 'Withdraw')
  await keys.use('button', 'Withdraw invitation')
  await keys.sees('The invitation is withdrawn.')
  assert.deepEqual((await listed()).invitations, [])
  const { email } = (await listed()).members.find(({ role }) => role === 'member')!
  const role = async () => (await listed()).members.find((one) => one.email === email)?.role
  await keys.take('Actions for Ada', 'Change role')
  await keys.choose('Viewer')
  await keys.use('button', 'Change role')
  await until('the other role', async () => (await role()) === 'viewer')
  await keys.closed()
  await keys.take('Actions for Ada', 'Remove')
  await keys.stands('textbox', `Type ${email} to confirm`)
  await keys.type(email)
  await keys.use('button', 'Remove member')
  await until('them to be gone', async () => (await role()) === undefined)
  await keys.closed()
}

async function readAudit({ keys }: Stage): Promise<void> {
  await keys.press('g', 'a')
  await keys.sees(/created the key/)
  await keys.select('Show only', 'Webhooks')
  await keys.sees(/created the webhook endpoint/)
  await keys.seesNo(/created the key/)
  const file = await keys.download('link', 'Export CSV')
  assert.match(file.text, /"key\.rotated","Booking 2"/)
}

async function setPerson({ keys }: Stage): Promise<void> {
  type Person = { person: { name: string; hasPassword: boolean }; organization: { name: string } }
  const session = () => ask<Person>(keys, '/session')
  await keys.press('g', 't')
  await keys.title('Settings')
  await keys.fill('Name', 'Ada King')
  await keys.press('Enter')
  await until('the name', async () => (await session()).person.name === 'Ada King')
  await keys.choose('Dark')
  assert.equal(await keys.look('document.documentElement.dataset.theme'), 'dark')
  await keys.fill('New password', 'correct horse battery')
  await keys.use('button', 'Set password')
  await until('the password', async () => (await session()).person.hasPassword)
  await keys.fill('Device name', 'Laptop')
  await keys.press('Enter')
  await keys.sees('The passkey is added')
  await nameOrganization(keys)
  await until('the other name', async () => (await session()).organization.name === 'Harbour')
}

async function nameOrganization(keys: Keyboard): Promise<void> {
  // Skips the first field of this name.
  await keys.to('button', 'Copy ID')
  await keys.to('textbox', 'Name', 'Shift+Tab')
  await keys.press('Control+a')
  await keys.type('Harbour')
  await keys.press('Enter')
}

/** Makes two more sessions by the passkey. Ends one, then the others. */
async function endSessions({ keys }: Stage): Promise<void> {
  type Listed = { sessions: unknown[] }
  const count = async () => (await ask<Listed>(keys, '/sessions')).sessions.length
  // Signing in again ends the browser's session. Without its cookie, the browser is a new one to the service.
  for (let more = 0; more < 2; more++) {
    await keys.forget()
    await keys.open('/sign-in', 'Sign in')
    await keys.use('button', 'Use a passkey')
    await keys.title(/Overview|Send your first/)
  }
  await keys.press('g', 't')
  await keys.has('button', 'Remove Laptop')
  assert.equal(await count(), 3)
  await keys.to('button', 'End all other sessions')
  await keys.use('button', /^End the session of/)
  await until('one to end', async () => (await count()) === 2)
  await keys.use('button', 'End all other sessions', 'Shift+Tab')
  await keys.has('dialog', 'End all other sessions?')
  await keys.use('button', 'End all other sessions')
  await until('the others to end', async () => (await count()) === 1)
  await keys.use('button', 'Remove Laptop', 'Shift+Tab')
  await keys.use('button', 'Remove')
  await keys.sees('No passkeys yet.')
}

/** The pages hide everything that a viewer may not do. */
async function lookAsViewer({ open }: Stage): Promise<void> {
  const viewer = await open('viewer')
  for (const [key, title] of [
    ['k', 'Keys'],
    ['w', 'Webhooks'],
    ['p', 'Members'],
  ] as const) {
    await viewer.press('g', key)
    await viewer.title(title)
    assert.equal(await viewer.look("document.querySelectorAll('main button[class*=bg-accent]').length"), 0)
  }
  viewer.assertClean()
}

test('a person sets keys, webhooks, members and settings by keys alone', { skip }, async (t) => {
  const stage = await setStage(t)
  await useKeys(stage)
  await useWebhooks(stage)
  await setPerson(stage)
  await useMembers(stage)
  await readAudit(stage)
  await endSessions(stage)
  await lookAsViewer(stage)
  assertAllDone('settings', stage.keys)
  stage.keys.assertClean()
})
