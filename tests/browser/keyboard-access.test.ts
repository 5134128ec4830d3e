// Signing up and in by keys alone: proof, the request for access, a lost password, an invitation, another organization.
import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import type { OrganizationId } from '../../src/base/ids.ts'
import { changeOrganizationStatus } from '../../src/flow/accounts/organization.ts'
import type { Inbox } from '../support/api.ts'
import { chromiumMissing } from '../support/chromium.ts'
import { launchBrowser, signInAddress, urlOfListener } from '../support/dashboard.ts'
import { Keyboard } from '../support/keyboard.ts'
import { assertAllDone } from '../support/keyboard-deeds.ts'
import { makePlace, startNode, type TestCaller, type TestNode } from '../support/node.ts'
import { until } from '../support/until.ts'

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)
const skip = chromiumMissing ?? false
const [first, second] = ['correct horse battery staple', 'another horse battery']

interface Stage {
  node: TestNode
  caller: TestCaller
  open: () => Promise<Keyboard>
  /** The address of the latest mailed link of this kind. */
  mailedLink: (path: string) => Promise<string>
}

async function setStage(t: TestContext): Promise<Stage> {
  const node = await startNode(await makePlace(t), { env: { POSTHORN_SIGN_UP: 'open' } })
  const caller = await node.createCaller()
  const inbox = await caller.api.createInbox('ben')
  const browser = await launchBrowser(t)
  return {
    node,
    caller,
    open: () => Keyboard.open(browser, urlOfListener(node)),
    mailedLink: (path) => until(`the mail with ${path}`, () => linkIn(caller, inbox, path)),
  }
}

async function linkIn({ api }: TestCaller, { id }: Inbox, path: string): Promise<string | undefined> {
  const { messages } = await api.want<{ messages: { text: string }[] }>(
    `/v1/inboxes/${id}/messages?direction=inbound`,
  )
  return messages.map(({ text }) => new RegExp(`${path}#\\S+`).exec(text)?.[0]).find(Boolean)
}

const sessionOf = (keys: Keyboard) =>
  keys.look<{ organization: { id: OrganizationId; name: string } }>(
    "fetch('/app/v1/session').then((answer) => answer.json())",
  )

async function signUp({ node, mailedLink }: Stage, keys: Keyboard): Promise<void> {
  await keys.open('/sign-in', 'Sign in')
  await keys.use('link', 'Sign up')
  await keys.title('Create an account')
  await keys.fill('Your name', 'Ben')
  await keys.fill('Email address', 'ben@inbox.test')
  await keys.fill('Password', first)
  await keys.press('Enter')
  await keys.title('Check your email')
  await keys.open(await mailedLink('/confirm'))
  await keys.use('button', 'Confirm and sign in')
  await keys.fill('Organization name', 'Harbour Hotel')
  await keys.use('button', 'Request access')
  await keys.title('Harbour Hotel is awaiting approval')
  const { organization } = await sessionOf(keys)
  await changeOrganizationStatus(node.foundation, organization.id, 'active')
  await keys.title('Send your first email')
}

async function leaveAndReturn({ mailedLink }: Stage, keys: Keyboard): Promise<void> {
  await keys.take(/^Your account/, 'Sign out')
  await keys.title('Sign in')
  assert.equal(await keys.look("fetch('/app/v1/session').then(({ status }) => status)"), 204)
  await keys.fill('Email address', 'ben@inbox.test')
  await keys.fill('Password', first)
  await keys.press('Enter')
  await keys.title('Send your first email')
  await keys.take(/^Your account/, 'Sign out')
  await keys.use('link', 'Forgot your password?')
  await keys.title('Reset your password')
  await keys.fill('Email address', 'ben@inbox.test')
  await keys.use('button', 'Send link')
  await keys.title('Check your email')
  await keys.open(await mailedLink('/reset'))
  await keys.fill('New password', second)
  await keys.use('button', 'Set password')
  await keys.title('Send your first email')
}

/** An owner of another organization invites the person, who then works for both. */
async function joinAnother({ node, caller, open, mailedLink }: Stage, keys: Keyboard): Promise<Keyboard> {
  const owner = await open()
  await owner.open(await signInAddress(node, caller.organizationId))
  await owner.title(/Overview|Send your first/)
  await owner.press('g', 'p')
  await owner.use('button', 'Invite')
  await owner.stands('textbox', 'Email address')
  await owner.type('ben@inbox.test')
  await owner.press('Enter')
  await owner.sees('Open invitations')
  await keys.open(await mailedLink('/invitation'))
  await keys.title('Join Test')
  await keys.use('button', 'Join')
  await until('the other organization', async () => (await sessionOf(keys)).organization.name === 'Test')
  await keys.title(/Overview|Send your first/)
  await keys.take(/^Switch organization/, 'Harbour Hotel')
  await until('the first one', async () => (await sessionOf(keys)).organization.name === 'Harbour Hotel')
  await keys.has('button', /Switch organization: Harbour Hotel/)
  await keys.title('Send your first email')
  await keys.take(/^Switch organization/, 'Request another organization')
  await keys.title('Name your organization')
  await keys.fill('Organization name', 'Boat House')
  await keys.press('Enter')
  await keys.title('Boat House is awaiting approval')
  await keys.use('button', 'Harbour Hotel')
  await keys.title('Send your first email')
  return owner
}

test('people join, leave and sign in by keys alone', { skip }, async (t) => {
  const stage = await setStage(t)
  const keys = await stage.open()
  await signUp(stage, keys)
  await leaveAndReturn(stage, keys)
  const owner = await joinAnother(stage, keys)
  assertAllDone('access', keys, owner)
  for (const one of [keys, owner]) one.assertClean()
})
