// Mail by keys alone: the first steps, inboxes, reading, writing, finding, deleting, and the frame around every page.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { before, type TestContext, test } from 'node:test'
import nodemailer from 'nodemailer'
import type { Api, Inbox, Message } from '../support/api.ts'
import { chromiumMissing } from '../support/chromium.ts'
import { fakeClamd, streamed } from '../support/clamd.ts'
import { launchBrowser, signInAddress, urlOfListener } from '../support/dashboard.ts'
import { Keyboard } from '../support/keyboard.ts'
import { assertAllDone } from '../support/keyboard-deeds.ts'
import { makePlace, startNode } from '../support/node.ts'
import { until } from '../support/until.ts'

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)
const skip = chromiumMissing ?? false

interface Stage {
  keys: Keyboard
  api: Api
  /** Sends to the inbox from outside. */
  receive(to: string, subject: string, more?: object): Promise<void>
  list(inboxId: string): Promise<Message[]>
  /** Remote images in HTML, and the number of their requests. */
  pictures: { url: string; count: () => number }
}

async function servePicture(t: TestContext): Promise<Stage['pictures']> {
  let count = 0
  const server = createServer((_request, response) => {
    count++
    response.setHeader('content-type', 'image/svg+xml').end('<svg xmlns="http://www.w3.org/2000/svg"/>')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/picture.svg`, count: () => count }
}

async function setStage(t: TestContext): Promise<Stage> {
  const clamd = await fakeClamd(t, (socket, received) => {
    if (streamed(received)) socket.end('stream: OK\0')
  })
  const node = await startNode(await makePlace(t), {
    env: { POSTHORN_CLAMD: `${clamd.host}:${clamd.port}` },
  })
  const { api, organizationId } = await node.createCaller()
  const keys = await Keyboard.open(await launchBrowser(t), urlOfListener(node))
  const mailer = nodemailer.createTransport({
    host: node.smtp.host,
    port: node.smtp.port,
    tls: { rejectUnauthorized: false },
  })
  await keys.open(await signInAddress(node, organizationId))
  return {
    keys,
    api,
    pictures: await servePicture(t),
    receive: async (to, subject, more = {}) => {
      await mailer.sendMail({ from: 'Bob <bob@far.test>', to, subject, text: `About ${subject}.`, ...more })
    },
    list: async (inboxId) =>
      (await api.want<{ messages: Message[] }>(`/v1/inboxes/${inboxId}/messages`)).messages,
  }
}

async function inboxOf(api: Api, localPart: string): Promise<Inbox | undefined> {
  const { inboxes } = await api.want<{ inboxes: Inbox[] }>('/v1/inboxes')
  return inboxes.find(({ address }) => address === `${localPart}@inbox.test`)
}

/** The first steps on the overview. */
async function begin({ keys, api, list }: Stage): Promise<void> {
  await keys.title('Send your first email')
  await keys.press('Tab')
  await keys.stands('link', 'Skip to content')
  await keys.press('Enter')
  await keys.fill('Address', 'hello')
  await keys.use('button', 'Create inbox')
  await keys.use('button', 'Send email')
  await keys.sees(/^It arrived after/)
  const hello = await inboxOf(api, 'hello')
  assert.ok((await list(hello!.id)).some(({ direction }) => direction === 'inbound'))
  await keys.open('/', 'Overview')
  await keys.use('link', /Your first email/)
  await keys.title('Your first email')
}

async function openInbox({ keys, api }: Stage): Promise<Inbox> {
  await keys.press('g', 'm')
  await keys.use('button', 'New inbox')
  await keys.fill('Address', 'ada')
  await keys.fill('Name', 'Ada Lovelace')
  await keys.press('Enter')
  await keys.sees('No mail yet')
  const inbox = await inboxOf(api, 'ada')
  await keys.take('Inbox actions', 'Copy address')
  await keys.sees(`Copied: ${inbox!.address}`)
  assert.equal(await keys.clipboard(), inbox!.address)
  await keys.stands('button', 'Inbox actions')
  await keys.press('Enter')
  await keys.has('menu', 'Inbox actions')
  await keys.press('Escape')
  await keys.stands('button', 'Inbox actions')
  return inbox!
}

async function write({ keys, list }: Stage, inbox: Inbox): Promise<void> {
  await keys.use('button', 'Write a message', 'Shift+Tab')
  await keys.has('form', 'New message')
  await keys.press('Escape')
  await keys.closed()
  await keys.stands('button', 'Write a message')
  await keys.press('c')
  await keys.stands('textbox', 'To: type an address, then Enter')
  await keys.type(inbox.address)
  await keys.press('Enter')
  await keys.use('button', 'Cc')
  await keys.stands('textbox', 'Cc: type an address, then Enter')
  await keys.type('eve@far.test,carl@far.test,')
  await keys.to('button', 'Remove carl@far.test', 'Shift+Tab')
  await keys.press('Enter')
  await keys.fill('Subject', 'By keys')
  await keys.fill('Message', 'Written without a mouse.')
  await keys.use('button', 'Add HTML')
  await keys.fill('Message as HTML', '<p>Written <b>without</b> a mouse.</p>')
  await keys.to('button', 'Attach files', 'Shift+Tab')
  await keys.give({ name: 'note.txt', text: 'A note.' })
  await keys.sees('note.txt')
  await keys.press('Control+Enter')
  await keys.sees('Sent')
  const sent = (await list(inbox.id)).find(({ direction }) => direction === 'outbound')!
  assert.deepEqual([sent.subject, sent.attachments?.[0]?.filename], ['By keys', 'note.txt'])
}

async function readMail(stage: Stage, inbox: Inbox): Promise<void> {
  const { keys, receive, pictures } = stage
  const html = `<h1>Dinner</h1><p>Shall we? <a href="https://ok.test/">Yes</a></p><img alt="" src="${pictures.url}">`
  await keys.press('Escape')
  await receive(inbox.address, 'Dinner', {
    html,
    cc: 'eve@far.test',
    attachments: [{ filename: 'terms.txt', content: 'These are the terms.' }],
  })
  await keys.row(/Dinner/)
  await keys.use('button', 'Load image')
  await until('the picture to be fetched', () => pictures.count() === 1)
  await keys.use('button', 'Details')
  await keys.sees('The mail is not signed.')
  const file = await keys.download('link', 'Download terms.txt')
  assert.deepEqual(file, { name: 'terms.txt', text: 'These are the terms.' })
  await keys.use('button', 'Text', 'Shift+Tab')
  await keys.sees('About Dinner.')
  await keys.use('button', 'Headers')
  await keys.sees('Delivered-To')
  await keys.use('button', 'Source')
  const source = await keys.download('link', 'Download source')
  assert.match(source.text, /^Subject: Dinner\r$/m)
}

async function answer({ keys, list }: Stage, inbox: Inbox): Promise<void> {
  await keys.press('r')
  await keys.stands('textbox', 'Message')
  await keys.type('With pleasure.')
  await keys.press('Control+Enter')
  await keys.sees('With pleasure.')
  await keys.sees('Sent')
  const answers = async () => (await list(inbox.id)).filter(({ subject }) => subject === 'Re: Dinner')
  await until('the answer', async () => (await answers()).length === 1)
  assert.equal((await answers())[0]?.to.length, 1)
  await keys.use('button', 'Reply to all')
  await keys.stands('textbox', 'Message')
  await keys.type('All of us.')
  await keys.use('button', 'Send')
  await keys.sees('All of us.')
  await until('the second answer', async () => (await answers()).length === 2)
  // The page closes the editor after the service has taken the answer. Until then it takes no shortcut.
  await keys.seesNo(/^Discard$/)
  await keys.press('a')
  await keys.stands('textbox', 'Message')
  await keys.use('button', 'Discard')
  await keys.sees('The draft is discarded')
}

async function remove({ keys, list }: Stage, inbox: Inbox): Promise<void> {
  const all = (await list(inbox.id)).length
  await keys.press('n')
  await keys.take('Message actions', 'Delete message')
  await keys.sees('The message is deleted')
  await keys.press('z')
  await keys.seesNo('The message is deleted')
  assert.equal((await list(inbox.id)).length, all, 'it was taken back')
  await keys.press('#')
  await keys.sees('The conversation is deleted')
  assert.equal((await list(inbox.id)).length, all, 'it can still be taken back')
  await keys.use('button', 'Dismiss', 'Shift+Tab')
  await until('it to be deleted', async () => (await list(inbox.id)).length < all)
}

async function find({ keys, receive }: Stage, inbox: Inbox): Promise<void> {
  for (const subject of ['Cauliflower', 'Broccoli']) await receive(inbox.address, subject)
  await keys.has('link', /Broccoli/)
  await keys.press('/')
  await keys.stands('searchbox', 'Search this inbox')
  await keys.type('cauliflower')
  await until('the words to be found', async () => {
    await keys.has('list', 'Found messages').catch(() => null)
    return (await keys.look('document.querySelectorAll("[data-thread]").length')) === 1
  })
  await keys.use('button', 'Filters')
  await keys.select('Direction', 'Sent')
  await keys.sees('No messages found')
  await keys.fill('From this address', 'nobody@far.test')
  await keys.press('Enter')
  await keys.use('button', 'Clear')
  await keys.has('link', /Broccoli/)
}

async function renameInbox({ keys, api }: Stage, inbox: Inbox): Promise<void> {
  await keys.take('Inbox actions', 'Rename inbox', 'Shift+Tab')
  await keys.fill('Name', 'Countess Ada')
  await keys.press('Enter')
  await keys.sees('The inbox is renamed')
  const { displayName } = await api.want<{ displayName: string }>(`/v1/inboxes/${inbox.id}`)
  assert.equal(displayName, 'Countess Ada')
}

async function deleteInbox({ keys, api }: Stage, inbox: Inbox): Promise<void> {
  await keys.take('Inbox actions', 'Delete inbox', 'Shift+Tab')
  await keys.stands('textbox', 'Type ada to confirm')
  await keys.type('ada')
  await keys.use('button', 'Delete inbox')
  await keys.sees(`${inbox.address} is deleted`)
  assert.equal((await api.call(`/v1/inboxes/${inbox.id}`)).status, 404)
}

/** The controls around every page. */
async function goAround({ keys, api }: Stage): Promise<void> {
  await keys.press('?')
  await keys.has('dialog', 'Keyboard shortcuts')
  await keys.press('Escape')
  await keys.closed()
  const hello = await inboxOf(api, 'hello')
  await keys.press('Control+k')
  await keys.stands('combobox', 'Find a page, inbox or ID…')
  await keys.type('hello')
  await keys.has('option', /^hello@inbox\.test/)
  assert.equal(await keys.look("document.querySelectorAll('[role=option]').length"), 2, 'and a search')
  await keys.press('ArrowDown', 'ArrowUp', 'Enter')
  await until('the inbox', () => keys.address() === `/mail/${hello!.id}`)
  await keys.use('link', 'Analytics')
  await keys.title('Analytics')
  await keys.stands('heading', 'Analytics')
  await keys.take(/^Your account/, 'Dark', 'Shift+Tab')
  assert.equal(await keys.look('document.documentElement.dataset.theme'), 'dark')
  await keys.stands('button', /^Your account/)
  await keys.take(/^Your account/, 'Settings')
  await keys.title('Settings')
}

async function lookAtCaptured({ keys }: Stage): Promise<void> {
  await keys.press('g', 'c')
  await keys.row(/By keys/)
  await keys.use('button', 'Source')
  const source = await keys.download('link', 'Download .eml')
  assert.match(source.text, /^Subject: /m)
  await keys.press('Escape')
  await until('the list alone', () => keys.address() === '/captured')
  await keys.fill('Filter by recipient, sender or subject', 'no such mail')
  await keys.sees('No matching mail')
  await keys.sees('0 mails')
  await keys.use('button', 'Delete all', 'Shift+Tab')
  await keys.has('dialog', 'Delete all captured mail?')
  await keys.use('button', 'Delete all')
  await keys.sees('No captured mail yet')
}

test('a person reads, writes, finds and deletes mail by keys alone', { skip }, async (t) => {
  const stage = await setStage(t)
  await begin(stage)
  const inbox = await openInbox(stage)
  await write(stage, inbox)
  await readMail(stage, inbox)
  await answer(stage, inbox)
  await remove(stage, inbox)
  await find(stage, inbox)
  await renameInbox(stage, inbox)
  await deleteInbox(stage, inbox)
  await lookAtCaptured(stage)
  await goAround(stage)
  assertAllDone('mail', stage.keys)
  stage.keys.assertClean()
})
