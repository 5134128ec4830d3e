// The operator's desk by keys alone: approving, limiting and deleting organizations, queues, the doctor, mail, signing out.
import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import type { OrganizationId } from '../../src/base/ids.ts'
import { createOrganization, defaultLimits } from '../../src/flow/accounts/organization.ts'
import { createDeskLink } from '../../src/flow/people/operator-access.ts'
import type { Submission } from '../support/api.ts'
import { chromiumMissing } from '../support/chromium.ts'
import { launchBrowser } from '../support/dashboard.ts'
import { Keyboard } from '../support/keyboard.ts'
import { assertAllDone } from '../support/keyboard-deeds.ts'
import { makePlace, send, startNode, type TestCaller, type TestNode } from '../support/node.ts'
import { until } from '../support/until.ts'

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)
const skip = chromiumMissing ?? false

interface Stage {
  keys: Keyboard
  node: TestNode
  caller: TestCaller
}

async function setStage(t: TestContext): Promise<Stage> {
  const node = await startNode(await makePlace(t))
  const caller = await node.createCaller()
  await createOrganization(node.foundation, {
    name: 'Harbour Hotel',
    status: 'pending',
    limits: defaultLimits,
  })
  const { host, port } = node.app.listening.operator
  const keys = await Keyboard.open(await launchBrowser(t), `http://${host}:${port}`)
  return { keys, node, caller }
}

async function openDesk({ keys, node }: Stage): Promise<void> {
  await keys.open('/', 'Open the desk')
  await keys.use('button', 'Copy Create a link')
  assert.equal(await keys.clipboard(), 'bin/posthorn operator link')
  const { token } = await createDeskLink(node.foundation)
  await keys.open(`/#${token}`)
  await keys.title('Approvals')
}

interface Listed {
  id: OrganizationId
  name: string
  status: string
  limits?: Record<string, number>
}

/** Asks the API as the desk does. */
const ask = <Body>(keys: Keyboard, path: string) =>
  keys.look<Body>(`fetch('/desk/v1${path}').then((answer) => answer.json())`)

async function find(keys: Keyboard, name: string): Promise<Listed | undefined> {
  const { organizations } = await ask<{ organizations: Listed[] }>(keys, '/organizations')
  return organizations.find((one) => one.name === name)
}

async function steerOrganization({ keys }: Stage): Promise<void> {
  await keys.use('button', 'Approve: Harbour Hotel')
  await keys.sees('No pending requests')
  assert.equal((await find(keys, 'Harbour Hotel'))!.status, 'active')
  await keys.press('g', 'o')
  await keys.has('link', /Harbour Hotel/)
  await keys.press('/')
  await keys.stands('searchbox', 'Name or id')
  await keys.type('Harb')
  await keys.select('Status', 'Active (2)')
  await keys.use('link', /Harbour Hotel/)
  await keys.title('Harbour Hotel')
  await keys.use('button', 'Suspend')
  await keys.use('button', 'Suspend')
  await until('it to be suspended', async () => (await find(keys, 'Harbour Hotel'))!.status === 'suspended')
  await keys.closed()
  await keys.use('button', 'Approve again')
  await until('it to be active', async () => (await find(keys, 'Harbour Hotel'))!.status === 'active')
  await keys.use('button', 'Change limits')
  await keys.fill('Messages per minute', '7')
  await keys.press('Enter')
  await keys.sees('Limits changed')
  await keys.stands('button', 'Change limits')
  await keys.take('More actions', 'Rename', 'Shift+Tab')
  await keys.stands('textbox', 'Name')
  await keys.press('Control+a')
  await keys.type('Boat House')
  await keys.press('Enter')
  await keys.title('Boat House')
  await keys.stands('button', 'More actions')
  await keys.take('More actions', 'Delete')
  await keys.stands('textbox', 'Type Boat House to confirm')
  await keys.type('Boat House')
  await keys.use('button', 'Delete')
  await until('it to be deleted', async () => (await find(keys, 'Boat House')) === undefined)
  await keys.title('Organizations')
}

async function steerQueue({ keys, caller: { api } }: Stage): Promise<void> {
  const inbox = await api.createInbox()
  const stateOf = async () => (await ask<{ state: string }>(keys, '/queues/@capture')).state
  await send(api, inbox, ['first@far.test'])
  await keys.press('g', 'q')
  await keys.title('Queues')
  await keys.open('/#/queues/@capture', '@capture')
  await keys.use('button', 'Pause')
  await until('the pause', async () => (await stateOf()) === 'paused')
  await keys.stands('button', 'Resume')
  const { submission } = await send(api, inbox, ['ada@far.test'])
  await keys.sees('ada@far.test')
  await keys.take('More actions', 'Flush')
  await keys.has('dialog', /due now/)
  await keys.use('button', 'Flush')
  await keys.sees(/(is|are) due now/)
  await keys.closed()
  await keys.stands('button', 'More actions')
  await keys.take('More actions', 'Cancel all')
  await keys.stands('textbox', 'Type @capture to confirm')
  await keys.type('@capture')
  await keys.use('button', 'Cancel all')
  const isOver = async (id: string) => {
    const { recipients } = await api.want<Submission>(`/v1/submissions/${id}`)
    return recipients[0]!.status === 'failed'
  }
  await until('it to be given up', () => isOver(submission.id))
  const second = (await send(api, inbox, ['grace@far.test'])).submission
  await keys.closed()
  await keys.press('g', 'o')
  await keys.row(/^Test/)
  await keys.take('More actions', 'Cancel waiting mail')
  await keys.stands('textbox', 'Type Test to confirm')
  await keys.type('Test')
  await keys.use('button', 'Cancel waiting mail')
  await until('that to be given up', () => isOver(second.id))
  await keys.closed()
  await keys.press('g', 'q')
  await keys.row(/@capture/)
  await keys.use('button', 'Resume')
  await until('it to go on', async () => (await stateOf()) !== 'paused')
}

async function lookAround({ keys }: Stage): Promise<void> {
  await keys.press('g', 'n')
  await keys.use('button', 'Run checks')
  await keys.has('button', 'Run checks again')
  await keys.press('g', 'm')
  await keys.to('tab', 'Postmaster')
  await keys.press('ArrowRight')
  await keys.row(/Test/)
  const source = await keys.download('link', 'Download source')
  assert.match(source.text, /^Subject: Test/m)
  await keys.press('g', 'l')
  await keys.sees('Queue paused')
  await keys.press('g', 'u')
  await keys.has('searchbox', 'Filter by name or description')
  await keys.press('/')
  await keys.stands('searchbox', 'Filter by name or description')
  await keys.type('nothing is called so')
  await keys.sees('No metric found')
  await keys.take(/^Theme, shortcuts and close/, 'Dark', 'Shift+Tab')
  assert.equal(await keys.look('document.documentElement.dataset.theme'), 'dark')
  await keys.press('?')
  await keys.has('dialog', 'Keyboard shortcuts')
  await keys.press('Escape')
  await keys.closed()
  await keys.take(/^Theme, shortcuts and close/, 'Close the desk')
  await keys.title('Open the desk')
}

test('the operator opens, uses and closes the desk by keys alone', { skip }, async (t) => {
  const stage = await setStage(t)
  await openDesk(stage)
  await steerOrganization(stage)
  await steerQueue(stage)
  await lookAround(stage)
  assertAllDone('desk', stage.keys)
  // The page asks who is signed in while no person is.
  stage.keys.assertClean(/401 \(Unauthorized\)|404 \(Not Found\)/)
})
