// The page at /docs in a real browser: it shows the document, complains of nothing and loads nothing from elsewhere.
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
    'Show what this key may do',
  ])
    await shows(text)
  const outside = page.requests.filter(
    (url) => !url.startsWith(`${stage.base}/`) && !/^(?:data|blob):/.test(url),
  )
  assert.deepEqual(outside, [])
  assert.deepEqual(page.complaints, [])
})
