// The page at /docs in a real browser: it shows the document without page errors, and loads nothing from elsewhere.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { setStage } from '../http/stage.ts'
import { chromiumMissing, openPage } from '../support/chromium.ts'
import { until } from '../support/until.ts'

before(() =>
  assert.ok(!process.env['CI'] || !chromiumMissing, `in CI nothing is skipped: ${chromiumMissing}`),
)

test('check 65: /docs shows every part of the API in a browser', {
  skip: chromiumMissing ?? false,
}, async (t) => {
  const stage = await setStage(t)
  const page = await openPage(t, `${stage.base}/docs`)
  const shows = (text: string) =>
    until(`the page to show ${text}`, async () =>
      page.evaluate<boolean>(`document.body.innerText.includes(${JSON.stringify(text)})`),
    )
  for (const text of [
    'Posthorn',
    'Authentication',
    'Inboxes',
    'Suppressions',
    'Webhooks',
    "Show this key's permissions and limits",
  ])
    await shows(text)
  const placeholders = await page.evaluate<string[]>(
    `[...document.querySelectorAll('input')].map(({ placeholder }) => placeholder)`,
  )
  assert.ok(placeholders.includes('ph_…'), placeholders.join(', '))
  const outside = page.requests.filter(
    (url) => !url.startsWith(`${stage.base}/`) && !/^(?:data|blob):/.test(url),
  )
  assert.deepEqual(outside, [])
  assert.deepEqual(page.complaints, [])
})

test('check 65: /docs shows the fields and the scope of a send at once, and its script comes compressed and once', {
  skip: chromiumMissing ?? false,
}, async (t) => {
  const stage = await setStage(t)
  const fromMs = performance.now()
  const page = await openPage(t, `${stage.base}/docs#tag/messages/POST/v1/inboxes/{inboxId}/messages`)
  const body = `(() => {
    const section = [...document.querySelectorAll('section')].find(({ id }) => id.endsWith('/POST/v1/inboxes/{inboxId}/messages'))
    return section?.innerText.split('\\nBody\\n') ?? []
  })()`
  const shown = () =>
    until('the page to show a send', async () => {
      const [head, fields] = (await page.evaluate<string[] | undefined>(body)) ?? []
      return head && fields?.includes('\nResponses\n') ? { head, fields } : undefined
    })
  const { head, fields } = await shown()
  t.diagnostic(`shown after ${Math.round(performance.now() - fromMs)} ms`)
  assert.match(head, /\nScope: mailbox:send\.\n/)
  // A body with two forms is described once.
  assert.equal(fields.split('A message that starts a conversation.').length, 2)
  assert.match(fields, /'idempotency-key: a-new-one-for-each-action'/)
  const lines = fields.split('\nResponses\n')[0]!.split('\n')
  const names = [
    'to',
    'cc',
    'bcc',
    'replyTo',
    'subject',
    'text',
    'html',
    'attachments',
    'metadata',
    'purpose',
  ]
  assert.deepEqual(
    names.filter((name) => !lines.includes(name)),
    [],
  )
  const loaded = async () =>
    await page.evaluate<{ encodedBodySize: number; decodedBodySize: number; transferSize: number }>(`(() => {
      const [{ encodedBodySize, decodedBodySize, transferSize }] =
        performance.getEntriesByType('resource').filter(({ name }) => name.includes('/docs/script.js'))
      return { encodedBodySize, decodedBodySize, transferSize }
    })()`)
  const first = await loaded()
  assert.ok(first.decodedBodySize > 1_000_000 && first.encodedBodySize < first.decodedBodySize / 2.5)
  assert.ok(first.transferSize >= first.encodedBodySize)
  t.diagnostic(`script: ${first.encodedBodySize} of ${first.decodedBodySize} bytes`)
  await page.reload()
  await shown()
  // Cached files are not transferred.
  assert.equal((await loaded()).transferSize, 0)
  assert.deepEqual(
    page.requests.filter((url) => !url.startsWith(`${stage.base}/`) && !/^(?:data|blob):/.test(url)),
    [],
  )
})
