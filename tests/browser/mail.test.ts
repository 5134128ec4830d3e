// The mail pages in a real browser: opening, receiving, reading, finding, answering, deleting; the API confirms each change.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import nodemailer from 'nodemailer'
import type { Message } from '../support/api.ts'
import { chromiumMissing } from '../support/chromium.ts'
import { fakeClamd, streamed } from '../support/clamd.ts'
import { openPages } from '../support/dashboard.ts'
import { makePlace, startNode } from '../support/node.ts'
import { until } from '../support/until.ts'

const skip = chromiumMissing ? `SKIPPED: ${chromiumMissing}` : false
const picture =
  'iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FAAhKDveksOjmAAAAAElFTkSuQmCC'

async function setStage(t: TestContext) {
  const clamd = await fakeClamd(t, (socket, received) => {
    const content = streamed(received)
    if (content) socket.end(content.includes('HARMFUL') ? 'stream: Test FOUND\0' : 'stream: OK\0')
  })
  const node = await startNode(await makePlace(t), {
    env: { POSTHORN_DELIVERY: 'capture', POSTHORN_CLAMD: `${clamd.host}:${clamd.port}` },
  })
  const { organizationId, api } = await node.createCaller()
  const pages = await openPages(t, node, organizationId)
  const mailer = nodemailer.createTransport({
    host: node.smtp.host,
    port: node.smtp.port,
    tls: { rejectUnauthorized: false },
  })
  const list = async (inboxId: string) =>
    (await api.want<{ messages: Message[] }>(`/v1/inboxes/${inboxId}/messages`)).messages
  return { node, api, mailer, list, ...pages }
}

test('a person makes an inbox, sees mail arrive without a reload, and answers it by keyboard', {
  skip,
}, async (t) => {
  const { page, api, mailer, list, complaints, audit, node } = await setStage(t)
  await page.goto('/mail')
  await page.getByRole('button', { name: 'New inbox' }).first().click()
  await page.getByLabel('Address', { exact: true }).fill('Not an address')
  await page.getByRole('button', { name: 'Create inbox' }).click()
  await page.getByText('/localPart').waitFor()
  await page.getByLabel('Address', { exact: true }).fill('ada')
  await page.getByLabel('Name', { exact: true }).fill('Ada Lovelace')
  await page.getByRole('button', { name: 'Create inbox' }).click()
  await page.getByText('No mail yet').waitFor()
  assert.deepEqual(await audit(), [])
  const [inbox] = (await api.want<{ inboxes: { id: string; address: string }[] }>('/v1/inboxes')).inboxes
  assert.equal(inbox!.address, 'ada@inbox.test')

  const first = { from: 'Bob <bob@far.test>', to: inbox!.address, cc: 'eve@far.test', subject: 'Dinner' }
  await mailer.sendMail({ ...first, text: 'Shall we dine?\n\n> an older line\n', messageId: '<1@far.test>' })
  const row = page.locator('[data-thread]')
  await row.getByText('Dinner').waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.getByRole('article').getByText('Shall we dine?').waitFor()
  assert.equal(await page.getByText('an older line').count(), 0)
  await page.getByRole('button', { name: 'Show quoted text' }).click()
  await page.getByText('an older line').waitFor()
  await page.getByRole('button', { name: 'Details' }).click()
  await page.getByText('The mail is not signed.').waitFor()
  assert.deepEqual(await audit(), [])

  await page.keyboard.press('a')
  await page.getByText('To Bob <bob@far.test> · Cc eve@far.test').waitFor()
  await page.getByPlaceholder('Message').fill('With pleasure.')
  assert.deepEqual(await audit(), [])
  await page.keyboard.press('Control+Enter')
  await page.getByText('Sent', { exact: true }).waitFor()
  const sent = (await list(inbox!.id)).find(({ direction }) => direction === 'outbound')!
  assert.deepEqual(
    [sent.text, sent.subject, sent.to[0]!.email],
    ['With pleasure.', 'Re: Dinner', 'bob@far.test'],
  )
  assert.equal(sent.inReplyTo, '<1@far.test>')
  await page.getByRole('link', { name: 'View delivery' }).waitFor()
  assert.deepEqual(
    complaints.filter((line) => !line.includes('400')),
    [],
    node.log().slice(-500),
  )
})

test('HTML is shown without remote content, pictures on a click, and clean files as downloads', {
  skip,
}, async (t) => {
  const { page, api, mailer, list, complaints, audit } = await setStage(t)
  const far: string[] = []
  const server = createServer((request, response) => {
    far.push(`${request.url} ${request.headers.referer ?? ''}`)
    response.setHeader('content-type', 'image/png').end(Buffer.from(picture, 'base64'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const elsewhere = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const inbox = await api.createInbox()
  const html = `<h1>News</h1><img alt="far" src="${elsewhere}/p.png"><img alt="near" src="cid:near@x"><a href="https://ok.test/x">on</a>`
  await mailer.sendMail({
    from: 'news@far.test',
    to: inbox.address,
    subject: 'News',
    html,
    attachments: [
      { filename: 'near.png', cid: 'near@x', content: Buffer.from(picture, 'base64') },
      { filename: 'terms.txt', content: 'These are the terms.' },
      { filename: 'bad.exe', content: 'HARMFUL' },
    ],
  })
  const message = await until('the files to be scanned', async () => {
    const [found] = await list(inbox.id)
    return found?.attachments?.every(({ scanState }) => scanState !== 'unscanned') ? found : null
  })
  await page.goto(`/messages/${message.id}`)
  const frame = page.frameLocator('iframe')
  await frame.getByRole('heading', { name: 'News' }).waitFor()
  await until('the inline picture', () =>
    frame
      .getByAltText('near')
      .getAttribute('src')
      .then((src) => src?.startsWith('data:image/png')),
  )
  assert.deepEqual(await audit(), [])
  const link = frame.getByRole('link', { name: 'on' })
  assert.deepEqual(
    [await link.getAttribute('target'), await link.getAttribute('rel')],
    ['_blank', 'noopener noreferrer nofollow'],
  )
  assert.deepEqual(far, [])
  await page.getByRole('button', { name: 'Load image' }).click()
  await until('the picture to be fetched', () => far.length > 0)
  assert.deepEqual(far, ['/p.png '])

  assert.equal(await page.getByRole('link', { name: 'Download bad.exe' }).count(), 0)
  await page.getByText('The scanner found malware.').waitFor()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Download terms.txt' }).click(),
  ])
  assert.equal(download.suggestedFilename(), 'terms.txt')
  await page.getByRole('button', { name: 'Headers' }).click()
  await page.getByText('Delivered-To').waitFor()
  await page.getByRole('button', { name: 'Source' }).click()
  await page.getByText('Content-Disposition: attachment; filename=terms.txt').waitFor()
  assert.deepEqual(await audit(), [])
  assert.deepEqual(complaints, [])
})

test('a message is written once however often it is sent, and a deletion can be undone', {
  skip,
}, async (t) => {
  const { page, api, list, complaints, audit } = await setStage(t)
  const [inbox, other] = [await api.createInbox(), await api.createInbox()]
  await page.goto(`/mail/${inbox.id}`)
  await page.getByText('No mail yet').waitFor()
  await page.keyboard.press('c')
  const form = page.getByRole('form', { name: 'New message' })
  await form.getByRole('button', { name: 'Send' }).click()
  await page.getByText('Enter a recipient.').waitFor()
  const to = page.getByRole('textbox', { name: 'To: type an address, then Enter' })
  await to.fill('no address')
  await to.press('Enter')
  await page.getByText('“no address” is not an email address.').waitFor()
  await to.fill(`Other <${other.address}>`)
  await to.press('Enter')
  await page.getByLabel('Subject').fill('Once')
  await page.getByPlaceholder('Message').fill('Only once.')
  await page.locator('input[type=file]').setInputFiles({
    name: 'note.txt',
    mimeType: 'text/plain',
    buffer: Buffer.from('A note.'),
  })
  assert.deepEqual(await audit(), [])
  // The answer to the first try is lost. The draft and its key survive even a reload.
  await page.route('**/app/v1/inboxes/*/messages', async (route) => {
    await route.fetch()
    await route.abort()
  })
  await page.keyboard.press('Control+Enter')
  await page.getByText('The service does not respond').waitFor()
  await page.unroute('**/app/v1/inboxes/*/messages')
  assert.equal((await list(inbox.id)).length, 1)
  await form.getByRole('button', { name: 'Send' }).click()
  await page.getByText('This message was already sent').waitFor()
  const [sent] = await list(inbox.id)
  assert.deepEqual([(await list(inbox.id)).length, sent!.attachments?.[0]?.filename], [1, 'note.txt'])
  await until('it to arrive', async () => (await list(other.id)).length === 1)

  await page.getByRole('button', { name: 'Delete conversation' }).click()
  await page.getByText('The conversation is deleted').waitFor()
  assert.equal(await page.locator('[data-thread]').count(), 0)
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.locator('[data-thread]').waitFor()
  assert.equal((await list(inbox.id)).length, 1)
  await page.locator('[data-thread]').focus()
  await page.keyboard.press('#')
  await page.getByText('The conversation is deleted').waitFor()
  assert.equal((await list(inbox.id)).length, 1, 'it can still be taken back')
  // A page without a program: the API reference takes seconds of CPU until it is loaded.
  await page.goto('/livez')
  await until('who leaves the page to have meant it', async () => (await list(inbox.id)).length === 0)
  assert.deepEqual(
    complaints.filter((line) => !line.includes('ERR_FAILED')),
    [],
  )
})

test('mail that arrives between the list’s load and the live stream’s start is shown', {
  skip,
}, async (t) => {
  const { page, api, mailer } = await setStage(t)
  const inbox = await api.createInbox()
  const stream = Promise.withResolvers<void>()
  await page.route('**/v1/events', async (route) => {
    await stream.promise
    await route.continue()
  })
  await page.goto(`/mail/${inbox.id}`)
  await page.getByText('No mail yet').waitFor()
  await mailer.sendMail({ from: 'a@far.test', to: inbox.address, subject: 'Between', text: 'Hello.' })
  await until('the mail to be filed', async () => (await api.exported(inbox.id)).length === 1)
  stream.resolve()
  await page.locator('[data-thread]', { hasText: 'Between' }).waitFor()
})

test('words and filters find mail, and a phone shows one column at a time', { skip }, async (t) => {
  const { page, api, mailer, complaints, audit } = await setStage(t)
  const inbox = await api.createInbox()
  for (const subject of ['Cauliflower', 'Broccoli'])
    await mailer.sendMail({
      from: `${subject}@far.test`,
      to: inbox.address,
      subject,
      text: `About ${subject}.`,
    })
  await page.goto(`/mail/${inbox.id}`)
  await page.locator('[data-thread]').nth(1).waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('cauliflower')
  await page.waitForURL(/q=cauliflower/)
  const found = page.getByRole('list', { name: 'Found messages' }).locator('[data-thread]')
  await until('the words to be found', async () => (await found.count()) === 1)
  await page.getByRole('button', { name: 'Filters' }).click()
  await page.getByLabel('Direction').selectOption('outbound')
  await page.getByText('No messages found').waitFor()
  assert.deepEqual(await audit(), [])
  await page.getByRole('button', { name: 'Clear', exact: true }).click()
  await page.locator('[data-thread]').nth(1).waitFor()

  await page.setViewportSize({ width: 390, height: 844 })
  await page.goto('/mail')
  await page.locator(`a[title="${inbox.address}"]`).click()
  await page.locator('[data-thread]').first().click()
  await page.getByRole('article').getByText('About Broccoli.').waitFor()
  assert.equal(await page.locator('[data-thread]').first().isVisible(), false)
  assert.deepEqual(await audit(), [])
  const widths = await page.evaluate<number[]>('[document.documentElement.scrollWidth, innerWidth]')
  assert.ok(widths[0]! <= widths[1]!, 'nothing stands beyond the edge')
  await page.keyboard.press('Escape')
  await page.locator('[data-thread]').first().waitFor()
  await page.getByRole('button', { name: 'Inbox actions' }).click()
  await page.getByRole('menuitem', { name: 'Delete inbox' }).click()
  const deed = page.getByRole('button', { name: 'Delete inbox' })
  assert.equal(await deed.isDisabled(), true)
  await page.getByLabel(`Type ${inbox.address.split('@')[0]} to confirm`).fill(inbox.address.split('@')[0]!)
  await deed.click()
  await page.getByText('Create your first inbox').waitFor()
  assert.equal((await api.call(`/v1/inboxes/${inbox.id}`)).status, 404)
  assert.deepEqual(complaints, [])
})

test('the inbox with the newest mail is opened; rows show who wrote what; the chosen inbox is in view', {
  skip,
}, async (t) => {
  const { page, api, mailer, complaints, audit } = await setStage(t)
  const [busy, other, last] = [
    await api.createInbox('busy'),
    await api.createInbox('other'),
    await api.createInbox('last'),
  ]
  for (let n = 0; n < 20; n++) await api.createInbox(`quiet-${n}`)
  const from = 'Ada Lovelace <ada@far.test>'
  await mailer.sendMail({ from, to: other.address, subject: 'Elsewhere', text: 'To another inbox.' })
  await mailer.sendMail({
    from,
    to: busy.address,
    subject: 'The terms',
    text: 'They are attached.\n\nAda',
    attachments: [{ filename: 'terms.txt', content: 'These are the terms.' }],
  })
  await until('the mail to be filed', async () => (await api.exported(busy.id)).length === 1)

  await page.goto('/mail')
  await page.waitForURL(`**/mail/${busy.id}`)
  const row = page.locator('[data-thread]')
  for (const text of ['Ada Lovelace', 'The terms', 'They are attached. Ada'])
    await row.getByText(text).waitFor()
  await row.getByRole('img', { name: 'Has attachments' }).waitFor()
  const inboxes = page.getByRole('list', { name: 'Inboxes' }).getByRole('link')
  assert.match((await inboxes.allInnerTexts()).slice(0, 3).join(' '), /^All inboxes busy.* other/s)
  await inboxes.first().click()
  await row.getByText('Elsewhere').waitFor()
  assert.equal(await row.count(), 2)
  assert.deepEqual(await audit(), [])
  await row.getByText('Elsewhere').click()
  await page.waitForURL(`**/mail/all/thr_*`)
  await page.getByText('To another inbox.').filter({ visible: true }).nth(1).waitFor()

  await page.goto(`/mail/${last.id}`)
  await page.getByText('No mail yet').waitFor()
  const chosen = await page.locator(`a[title="${last.address}"]`).boundingBox()
  assert.ok(chosen && chosen.y > 0 && chosen.y + chosen.height <= 901, JSON.stringify(chosen))
  assert.deepEqual(complaints, [])
})

test('a long conversation opens at its newest message; on a phone its sender is not cut', {
  skip,
}, async (t) => {
  const { page, api, mailer, complaints, audit } = await setStage(t)
  const inbox = await api.createInbox()
  const from = 'An automatic writer with a long name <robot@far.test>'
  for (let n = 1; n <= 12; n++)
    await mailer.sendMail({
      from,
      to: inbox.address,
      subject: 'Long',
      text: `Message ${n}.`,
      messageId: `<${n}@far.test>`,
      headers: { 'auto-submitted': 'auto-generated' },
      ...(n > 1 && { inReplyTo: '<1@far.test>', references: '<1@far.test>' }),
    })
  await until('the mail to be filed', async () => (await api.exported(inbox.id)).length === 12)
  const [message] = await api.exported(inbox.id)
  await page.setViewportSize({ width: 390, height: 600 })
  await page.goto(`/mail/${inbox.id}/${message!.threadId}`)
  const articles = page.getByRole('article')
  const newest = articles.last().getByText('Message 12.')
  await newest.waitFor()
  assert.equal(await articles.count(), 4)
  const box = await newest.boundingBox()
  assert.ok(box && box.y + box.height < 600, JSON.stringify(box))
  const name = articles.last().getByText('An automatic writer with a long name')
  const isCut = `[...[...document.querySelectorAll('article')].at(-1).querySelectorAll('[data-head] span')]
    .some(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)`
  assert.equal(await page.evaluate(isCut), false)
  const [above, below] = [name, articles.last().getByText('Automatic', { exact: true })]
  assert.ok((await above.boundingBox())!.y < (await below.boundingBox())!.y)
  assert.deepEqual(await audit(), [])
  await page.getByRole('button', { name: '8 earlier messages' }).click()
  await until('all messages', async () => (await articles.count()) === 12)
  assert.match(await page.evaluate<string>('document.activeElement.textContent'), /Message 2\./)
  assert.deepEqual(complaints, [])
})
