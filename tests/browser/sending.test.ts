// The timeline of a message of every kind, in a real browser: its events, its updates, and its cancellation.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import { Clock } from '../../src/base/clock.ts'
import { purgeContents } from '../../src/flow/upkeep/purge-contents.ts'
import type { Submission } from '../support/api.ts'
import { chromiumMissing } from '../support/chromium.ts'
import { proveDomain } from '../support/customer-domain.ts'
import { untilStates } from '../support/node.ts'
import { openLife, type Stage, setStage, shows } from '../support/sent-mail.ts'
import { until } from '../support/until.ts'

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)
const skip = chromiumMissing ?? false

test('a message’s timeline shows each attempt, its reply, its meaning, the next step and the sent content', {
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
  // In the picture an attempt is its number, which stays when its caption has no room.
  assert.equal(await pages.page.getByTitle('Attempt 1: delivered').innerText(), '1')
  await pages.page.getByText('SMTP conversation', { exact: true }).click()
  const said = pages.page.getByRole('table', { name: 'SMTP conversation' }).getByRole('row')
  const rows = (await said.allInnerTexts()).map((row) => row.replace(/\s+/g, ' ').trim())
  for (const step of [/ms connect 220 /, / ms STARTTLS 220 /, / ms MAIL 250 /, /\d ms RCPT 250 /])
    assert.ok(
      rows.some((row) => step.test(row)),
      `${step} in ${rows.join(', ')}`,
    )
  assert.match(rows.at(-1)!, /^\d+ ms (?:\.|BDAT) 250 OK: message queued/)
  assert.deepEqual(await pages.audit(), [])
  await openLife(stage, ['nobody@plain.far.test'], 'bounced')
  for (const text of [
    '550 5.1.1 no such user here',
    'The mailbox does not exist.',
    /RCPT TO/,
    'none (plain text)',
  ])
    await shows(stage, text)
  await pages.page.getByRole('link', { name: 'View suppression' }).click()
  await pages.page.getByRole('heading', { level: 1, name: 'Suppressions' }).waitFor()
  await shows(stage, 'nobody@plain.far.test')
  await openLife(stage, ['joe@spam.far.test'], 'bounced')
  await shows(stage, /classified the message or the sending server as spam/)
  await openLife(stage, ['linus@grey.far.test'], 'deferred')
  await shows(stage, /defers unknown senders once/)
  await shows(stage, /Next attempt in/)
  assert.deepEqual(await pages.audit(), [])
  await openLife(stage, ['who@nowhere.far.test'], 'failed')
  await shows(stage, 'The domain does not exist.')
  await openLife(stage, ['who@shut.far.test'], 'failed')
  await shows(stage, 'The domain accepts no mail at all (null MX).')
  await readsContent(stage)
  assert.deepEqual(pages.complaints, [])
})

/** Sends without an inbox. Reads the sent content on the submission's page until it is deleted. */
async function readsContent(stage: Stage): Promise<void> {
  const { far, node, api, pages } = stage
  const { page } = pages
  await proveDomain(api, far.dns, 'hotel.example', ['outbound'])
  const { id } = await api.want<Submission>('/v1/send', {
    method: 'POST',
    status: 202,
    idempotencyKey: randomUUID(),
    body: {
      from: { email: 'desk@hotel.example', name: 'Front desk' },
      to: [{ email: 'ada@plain.far.test' }],
      subject: 'Your booking',
      html: '<h1>Room 7</h1>',
      text: 'Room 7 is yours.',
    },
  })
  await untilStates(api, id, 'delivered')
  await pages.open(`/sending/${id}`, 'Your booking')
  await page.frameLocator('iframe').getByRole('heading', { name: 'Room 7' }).waitFor()
  await shows(stage, /^The content is kept until \d+ \w+ \d{4}\.$/)
  await page.getByRole('button', { name: 'Text', exact: true }).click()
  await shows(stage, 'Room 7 is yours.')
  assert.deepEqual(await pages.audit(), [])
  const later = new Clock()
  later.advance(30 * 86_400_000)
  await purgeContents({ ...node.foundation, clock: later }, 86_400_000, 100)
  await page.reload()
  await shows(stage, /^The content was deleted\./)
}

test('a person cancels waiting mail on its page, which stays up to date while it is open', {
  skip,
}, async (t) => {
  const stage = await setStage(t, { slowMs: 1_500 })
  const { api, pages } = stage
  await openLife(stage, ['slow@slow.far.test'])
  await shows(stage, 'Live')
  await shows(stage, 'Attempt 1: delivered')
  const id = await openLife(stage, ['ada@plain.far.test', 'grace@full.far.test'], 'delivered', 'deferred')
  await shows(stage, /2 recipients: 1 delivered, 1 deferred/)
  await pages.page.getByRole('button', { name: 'Cancel pending delivery' }).click()
  await pages.page.getByRole('dialog').getByRole('button', { name: 'Cancel pending delivery' }).click()
  const { recipients } = await until('the rest to be cancelled', async () => {
    const submission = await api.want<Submission>(`/v1/submissions/${id}`)
    return submission.status === 'pending' ? null : submission
  })
  assert.deepEqual(
    recipients.map(({ status }) => status),
    ['delivered', 'failed'],
  )
  await shows(stage, 'The delivery was cancelled.')
  assert.equal(await pages.page.getByRole('button', { name: 'Cancel pending delivery' }).count(), 0)
  assert.deepEqual(pages.complaints, [])
})
