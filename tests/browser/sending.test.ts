// The pages of what was sent, in a real browser: the list with its filters, and the life of a message of every kind.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import type { Api, Inbox, Submission } from '../support/api.ts'
import { chromiumMissing } from '../support/chromium.ts'
import { openPages, type Pages } from '../support/dashboard.ts'
import { type FarSide, startFarSide } from '../support/far-side.ts'
import { makePlace, send, startNode, type TestNode, untilStates } from '../support/node.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { type Scope, until } from '../support/until.ts'

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)
const skip = chromiumMissing ?? false

interface Stage {
  far: FarSide
  node: TestNode
  api: Api
  inbox: Inbox
  pages: Pages
}

async function setStage(t: Scope, options: { slowMs?: number } = {}): Promise<Stage> {
  const far = await startFarSide(t, options)
  const node = await startNode(await makePlace(t), { env: far.env })
  const caller = await node.createCaller()
  const inbox = await caller.api.createInbox()
  return { far, node, api: caller.api, inbox, pages: await openPages(t, node, caller.organizationId) }
}

/** Sends, waits for the recipients' states, and opens the life of it. */
async function openLife({ api, inbox, pages }: Stage, to: string[], ...states: string[]): Promise<string> {
  const { submission } = await send(api, inbox, to)
  if (states.length > 0) await untilStates(api, submission.id, ...states)
  await pages.open(`/sending/${submission.id}`, 'Test')
  return submission.id
}

const shows = ({ pages: { page } }: Stage, text: string | RegExp) =>
  page.getByText(text).filter({ visible: true }).first().waitFor()

test('the life of a message tells each attempt, what was answered, what it means and what to do', {
  skip,
}, async (t) => {
  const stage = await setStage(t)
  const { pages } = stage
  await openLife(stage, ['ada@tls.far.test'], 'delivered')
  for (const text of [
    'Attempt 1: delivered',
    'mx.tls.far.test',
    'TLSv1.3',
    /TLS_AES_256/,
    '250 OK: message queued',
  ])
    await shows(stage, text)
  assert.deepEqual(await pages.audit(), [])
  await openLife(stage, ['nobody@plain.far.test'], 'bounced')
  for (const text of [
    '550 5.1.1 no such user here',
    'There is no such mailbox.',
    /RCPT TO/,
    'none: in plain text',
  ])
    await shows(stage, text)
  await pages.page.getByRole('link', { name: 'See the suppression' }).click()
  await pages.page.getByRole('heading', { level: 1, name: 'Suppressions' }).waitFor()
  await shows(stage, 'nobody@plain.far.test')
  await openLife(stage, ['joe@spam.far.test'], 'bounced')
  await shows(stage, /takes the message, or the server that sent it, for spam/)
  await openLife(stage, ['linus@grey.far.test'], 'deferred')
  await shows(stage, /turns unknown senders away once/)
  await shows(stage, /Next try in/)
  assert.deepEqual(await pages.audit(), [])
  await openLife(stage, ['who@nowhere.far.test'], 'failed')
  await shows(stage, 'There is no such domain.')
  await openLife(stage, ['who@shut.far.test'], 'failed')
  await shows(stage, 'The domain says that it takes no mail at all.')
  assert.deepEqual(pages.complaints, [])
})

test('what waits is cancelled on the page, which follows the message while it is open', {
  skip,
}, async (t) => {
  const stage = await setStage(t, { slowMs: 1_500 })
  const { api, pages } = stage
  await openLife(stage, ['slow@slow.far.test'])
  await shows(stage, 'Live')
  await shows(stage, 'Attempt 1: delivered')
  const id = await openLife(stage, ['ada@plain.far.test', 'grace@full.far.test'], 'delivered', 'deferred')
  await shows(stage, /2 recipients: 1 delivered, 1 waits for another try/)
  await pages.page.getByRole('button', { name: 'Cancel what waits' }).click()
  await pages.page.getByRole('dialog').getByRole('button', { name: 'Cancel what waits' }).click()
  const { recipients } = await until('the rest to be cancelled', async () => {
    const submission = await api.want<Submission>(`/v1/submissions/${id}`)
    return submission.status === 'pending' ? null : submission
  })
  assert.deepEqual(
    recipients.map(({ status }) => status),
    ['delivered', 'failed'],
  )
  await shows(stage, 'It was cancelled before it went out.')
  assert.equal(await pages.page.getByRole('button', { name: 'Cancel what waits' }).count(), 0)
  assert.deepEqual(pages.complaints, [])
})

function report(kind: 'dsn' | 'arf', email: string, returnPath: string): Buffer {
  const [type, about] =
    kind === 'dsn'
      ? [
          'delivery-status',
          `Reporting-MTA: dns; mx.far.test\n\nFinal-Recipient: rfc822; ${email}\nAction: failed\nStatus: 5.2.2\nDiagnostic-Code: smtp; 552 5.2.2 mailbox full\n`,
        ]
      : [
          'feedback-report',
          `Feedback-Type: abuse\nUser-Agent: Far/1.0\nOriginal-Rcpt-To: ${email}\nReporting-MTA: dns; mx.far.test\n`,
        ]
  const lines = `From: reports@far.test\nSubject: Report\nMIME-Version: 1.0\nContent-Type: multipart/report; report-type=${type}; boundary=b\n\n--b\nContent-Type: message/${type}\n\n${about}\n--b\nContent-Type: message/rfc822\n\nReturn-Path: <${returnPath}>\nSubject: Test\n\nx\n--b--\n`
  return Buffer.from(lines.replaceAll('\n', '\r\n'))
}

test('a bounce that comes later and a complaint join the picture', { skip }, async (t) => {
  const stage = await setStage(t)
  const { far, node, api, inbox } = stage
  const tell = async (kind: 'dsn' | 'arf', email: string) => {
    const { submission, message } = await send(api, inbox, [email])
    await untilStates(api, submission.id, 'delivered')
    const [copy] = far.sinks['plain']!.copiesOf(message.internetMessageId)
    const to = kind === 'dsn' ? copy!.from : 'fbl@inbox.test'
    await sendMail(node.smtp, { from: '', to, raw: report(kind, email, copy!.from) })
    await stage.pages.open(`/sending/${submission.id}`, 'Test')
    return submission.id
  }
  const returned = await tell('dsn', 'ada@plain.far.test')
  await untilStates(api, returned, 'bounced')
  await stage.pages.page.reload()
  await shows(stage, 'Came back')
  await shows(stage, 'The mailbox is full.')
  await tell('arf', 'grace@plain.far.test')
  await until('the complaint', async () => {
    const { complaints } = await api.want<{ complaints: unknown[] }>('/v1/complaints')
    return complaints.length > 0
  })
  await stage.pages.page.reload()
  await shows(stage, 'The recipient complained')
  await stage.pages.open('/complaints', 'Complaints')
  await shows(stage, 'grace@plain.far.test')
  assert.deepEqual(await stage.pages.audit(), [])
  assert.deepEqual(stage.pages.complaints, [])
})

test('the list narrows by state and recipient, by the keyboard too, and opens each life', {
  skip,
}, async (t) => {
  const stage = await setStage(t)
  const { api, inbox, pages } = stage
  const { page } = pages
  await pages.open('/sending', 'Sending')
  await shows(stage, 'Nothing was sent yet')
  assert.deepEqual(await pages.audit(), [])
  const bounced = await send(api, inbox, ['nobody@plain.far.test'])
  await untilStates(api, bounced.submission.id, 'bounced')
  for (let count = 0; count < 60; count++) await send(api, inbox, [`reader${count}@plain.far.test`])
  await pages.open('/sending', 'Sending')
  await shows(stage, 'reader59@plain.far.test')
  assert.deepEqual(await pages.audit(), [])
  await page.getByLabel('State').selectOption('failed')
  await shows(stage, 'nobody@plain.far.test')
  await page.getByText('reader59@plain.far.test').waitFor({ state: 'detached' })
  assert.match(page.url(), /status=failed/)
  await page.getByRole('button', { name: 'Clear the filters' }).click()
  await page.getByLabel('Recipient').fill('reader3@plain.far.test')
  await page.keyboard.press('Enter')
  await page.getByText('reader59@plain.far.test').waitFor({ state: 'detached' })
  await page.getByRole('heading', { level: 1 }).focus()
  await page.keyboard.press('j')
  await page.locator('[data-row]:focus').waitFor()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Test' }).waitFor()
  await shows(stage, 'reader3@plain.far.test')
  assert.deepEqual(pages.complaints, [])
})
