// The list of sent mail, and the later events of a mail, in a real browser.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { chromiumMissing } from '../support/chromium.ts'
import { send, untilStates } from '../support/node.ts'
import { setStage, shows } from '../support/sent-mail.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)
const skip = chromiumMissing ?? false

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

test('a later bounce and a complaint appear on the message’s page', { skip }, async (t) => {
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
  await shows(stage, 'Bounced')
  await shows(stage, 'The mailbox is full.')
  await tell('arf', 'grace@plain.far.test')
  await until('the complaint', async () => {
    const { complaints } = await api.want<{ complaints: unknown[] }>('/v1/complaints')
    return complaints.length > 0
  })
  await stage.pages.page.reload()
  await shows(stage, 'Complained')
  await stage.pages.open('/complaints', 'Complaints')
  await shows(stage, 'grace@plain.far.test')
  assert.deepEqual(await stage.pages.audit(), [])
  assert.deepEqual(stage.pages.complaints, [])
})

test('mail sent by a deleted inbox says so in place of its subject', { skip }, async (t) => {
  const stage = await setStage(t)
  const { api, inbox, pages } = stage
  const { submission } = await send(api, inbox, ['ada@plain.far.test'])
  await untilStates(api, submission.id, 'delivered')
  await api.want(`/v1/inboxes/${inbox.id}`, { method: 'DELETE', status: 204 })
  const gone = '(deleted with its message)'
  await pages.open('/sending', 'Sending')
  await shows(stage, gone)
  await pages.open(`/sending/${submission.id}`, gone)
  assert.deepEqual(pages.complaints, [])
})

test('state and recipient narrow the list, also by keyboard, and each row opens its timeline', {
  skip,
}, async (t) => {
  const stage = await setStage(t)
  const { api, inbox, pages } = stage
  const { page } = pages
  await pages.open('/sending', 'Sending')
  await shows(stage, 'No mail sent yet')
  assert.deepEqual(await pages.audit(), [])
  const bounced = await send(api, inbox, ['nobody@plain.far.test'])
  await untilStates(api, bounced.submission.id, 'bounced')
  for (let count = 0; count < 60; count++) await send(api, inbox, [`reader${count}@plain.far.test`])
  await pages.open('/sending', 'Sending')
  await shows(stage, 'reader59@plain.far.test')
  await page.getByRole('columnheader', { name: 'Subject' }).waitFor()
  assert.deepEqual(await pages.audit(), [])
  await page.setViewportSize({ width: 390, height: 844 })
  await page.getByRole('listitem').getByText(inbox.address).first().waitFor()
  assert.deepEqual(await pages.audit(), [])
  await page.setViewportSize({ width: 1280, height: 900 })
  await page.getByLabel('State').selectOption('failed')
  await shows(stage, 'nobody@plain.far.test')
  await page.getByText('reader59@plain.far.test').waitFor({ state: 'detached' })
  assert.match(page.url(), /status=failed/)
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await page.getByLabel('Recipient').fill('reader3@plain.far.test')
  await page.keyboard.press('Enter')
  await page.getByText('reader59@plain.far.test').waitFor({ state: 'detached' })
  // The filtered list appears after the former list is gone. Until then there is no row to move to.
  await shows(stage, 'reader3@plain.far.test')
  await page.getByRole('heading', { level: 1 }).focus()
  await page.keyboard.press('j')
  await page.locator('[data-row]:focus').waitFor()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Test' }).waitFor()
  await shows(stage, 'reader3@plain.far.test')
  assert.deepEqual(pages.complaints, [])
})
