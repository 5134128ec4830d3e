// Every page of router.tsx: no axe finding in either theme, and Tab reaches and shows every control.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { before, type TestContext, test } from 'node:test'
import { newUuid, type OrganizationId, type PersonId } from '../../src/base/ids.ts'
import { createOrganization, defaultLimits } from '../../src/flow/accounts/organization.ts'
import { addMember } from '../../src/flow/people/sessions.ts'
import { newToken } from '../../src/flow/people/tokens.ts'
import { insertPerson } from '../../src/store/people/people.ts'
import { insertToken } from '../../src/store/people/person-tokens.ts'
import { chromiumMissing } from '../support/chromium.ts'
import { registerDomain } from '../support/customer-domain.ts'
import { launchBrowser, signInAddress, urlOfListener } from '../support/dashboard.ts'
import { Keyboard } from '../support/keyboard.ts'
import { makePlace, send, startNode, type TestCaller, type TestNode, untilStates } from '../support/node.ts'
import { until } from '../support/until.ts'

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)
const skip = chromiumMissing ?? false
const root = resolve(import.meta.dirname, '../..')

/** The paths of the routes, as written in the file. */
function readRoutes(): string[] {
  const text = readFileSync(join(root, 'dashboard/src/router.tsx'), 'utf8')
  const own = [...text.matchAll(/\b(?:page|open)\(\s*'([^']*)'/g)].map(([, path]) => path!)
  const below = [...text.matchAll(/getParentRoute: \(\) => (\w+)Root, path: '([^']*)'/g)]
  return [...own, ...below.map(([, parent, path]) => `/${parent}${path}`)].sort()
}

/** An address of each route, and the title of its page. */
type Pages = Record<string, [address: string, title: string | RegExp]>

const outside: Pages = {
  '/sign-in': ['/sign-in', 'Sign in'],
  '/sign-up': ['/sign-up', 'Create an account'],
  '/confirm': ['/confirm#token', 'Confirm your address'],
  '/reset': ['/reset', 'Reset your password'],
  '/invitation': ['/invitation', 'Your invitation'],
}

const lists: Pages = {
  $: ['/nowhere', 'Page not found'],
  '/': ['/', 'Overview'],
  '/mail': ['/mail', 'Mail'],
  '/mail/': ['/mail', 'Mail'],
  '/sending': ['/sending', 'Sending'],
  '/domains': ['/domains', 'Domains'],
  '/suppressions': ['/suppressions', 'Suppressions'],
  '/complaints': ['/complaints', 'Complaints'],
  '/validation': ['/validation', 'Address check'],
  '/webhooks': ['/webhooks', 'Webhooks'],
  '/numbers': ['/numbers', 'Analytics'],
  '/captured': ['/captured', 'Captured mail'],
  '/captured/': ['/captured', 'Captured mail'],
  '/keys': ['/keys', 'Keys'],
  '/members': ['/members', 'Members'],
  '/audit': ['/audit', 'Audit log'],
  '/settings': ['/settings', 'Settings'],
}

/** Makes one of everything. Returns the pages that show it. */
async function fill({ api }: TestCaller): Promise<Pages> {
  const inbox = await api.createInbox('ada')
  const sent = await send(api, inbox, ['ada@far.test'])
  await untilStates(api, sent.submission.id, 'delivered')
  await send(api, inbox, [inbox.address])
  const domain = await registerDomain(api, 'shop.example')
  const body = { url: 'http://127.0.0.1:9999/hooks', description: 'Production' }
  const { id } = await api.want<{ id: string }>('/v1/webhooks', { method: 'POST', status: 201, body })
  await api.want('/v1/suppressions', { method: 'POST', status: 201, body: { email: 'joe@far.test' } })
  const thread = `/mail/${inbox.id}/${sent.message.threadId}`
  return {
    '/mail/$inboxId': [`/mail/${inbox.id}`, 'Mail'],
    '/mail/$inboxId/$threadId': [thread, 'Mail'],
    '/messages/$messageId': [`/messages/${sent.message.id}`, 'Mail'],
    '/sending/$submissionId': [`/sending/${sent.submission.id}`, 'Test'],
    '/domains/$domainId': [`/domains/${domain.id}`, 'shop.example'],
    '/webhooks/$webhookId': [`/webhooks/${id}`, 'Production'],
  }
}

async function setStage(t: TestContext) {
  const node = await startNode(await makePlace(t), { env: { POSTHORN_SIGN_UP: 'open' } })
  const caller = await node.createCaller()
  const pages = { ...lists, ...(await fill(caller)) }
  const browser = await launchBrowser(t)
  const open = () => Keyboard.open(browser, urlOfListener(node))
  return { node, caller, pages, open }
}

/** A link to a new password for a person who has added a passkey and a key since proving their address. */
async function resetLink({ foundation: { db } }: TestNode, organizationId: OrganizationId): Promise<string> {
  const { token, hash } = newToken()
  const [id, email, createdAt] = [newUuid<PersonId>(), 'lost@far.test', new Date()]
  const expiresAt = new Date(createdAt.getTime() + 3_600_000)
  await db.transaction(async (tx) => {
    await insertPerson(tx, { id, email, name: 'Ada', passwordHash: null, confirmedAt: createdAt, createdAt })
    await insertToken(tx, { hash, purpose: 'reset', personId: null, email, createdAt, expiresAt })
    await tx.query(
      `insert into passkey (id, person_id, name, credential_id, public_key, sign_count, transports, created_at)
      values (gen_random_uuid(), $1, 'Laptop', 'c', 'k', 0, '{}', $2)`,
      [id, expiresAt],
    )
    await addMember(tx, { organizationId, personId: id, email, role: 'viewer', at: createdAt })
    await tx.query(
      `insert into api_key (id, organization_id, name, kind, hash, scopes, send_mode, made_by, created_at)
      values (gen_random_uuid(), $1, 'Production', 'agent', 'h', '{}', 'reply_only', $2, $3)`,
      [organizationId, id, expiresAt],
    )
  })
  return `/reset#${token}`
}

/** Opens the pages one after another and returns their faults. */
async function judge(keys: Keyboard, pages: Pages): Promise<string[]> {
  const found: string[] = []
  const seen = new Set<string>()
  for (const [address, title] of Object.values(pages)) {
    if (seen.has(address)) continue
    seen.add(address)
    // Only the part after # differs from the former address, so the browser would not reload the page.
    await keys.open('about:blank')
    await keys.open(address, title)
    await keys.settle()
    found.push(...(await keys.audit()).map((violation) => `${address} ${violation}`))
    if (
      await keys.look(
        "document.getElementById('main') && document.documentElement.scrollHeight > innerHeight",
      )
    )
      found.push(`${address} scrolls twice: the window, too`)
    found.push(...(await keys.walk()).map((control) => `${address} Tab does not reach ${control}`))
  }
  return found
}

test('axe finds nothing on any page in either theme, and Tab reaches every control and shows its place', {
  skip,
}, async (t) => {
  const { node, caller, pages, open } = await setStage(t)
  const nobody = await open()
  const link = await resetLink(node, caller.organizationId as OrganizationId)
  const chosen: Pages = { '/reset#': [link, 'Choose a new password'] }
  assert.deepEqual(await judge(nobody, { ...outside, ...chosen }), [])
  nobody.assertClean()

  const asking = await open()
  const pending = await createOrganization(node.foundation, {
    name: 'Harbour',
    status: 'pending',
    limits: defaultLimits,
  })
  await asking.open(await signInAddress(node, pending.id))
  const waiting: Pages = { '/pending': ['/pending', 'Harbour is awaiting approval'] }
  await asking.title('Harbour is awaiting approval')
  assert.deepEqual(await judge(asking, waiting), [])
  asking.assertClean()

  const keys = await open()
  await keys.open(await signInAddress(node, caller.organizationId))
  await keys.title('Overview')
  const captured = await until('the captured mail', async () => {
    const listed = await keys.look<{ captured: { id: string }[] }>(
      "fetch('/app/v1/captured').then((answer) => answer.json())",
    )
    return listed.captured[0]
  })
  const all: Pages = { ...pages, '/captured/$capturedId': [`/captured/${captured.id}`, 'Captured mail'] }
  assert.deepEqual(await judge(keys, all), [])
  for (const menu of [/^Your account/, /^Switch organization/]) {
    await keys.use('button', menu)
    await keys.has('menu', menu)
    assert.deepEqual(await keys.audit(), [], String(menu))
    await keys.press('Escape')
  }
  keys.assertClean()
  const judged = [outside, waiting, all].flatMap((some) => Object.keys(some))
  assert.deepEqual(judged.sort(), readRoutes(), 'each route has an address here, at which it is looked at')
})
