// Tests which mail counts as automatic and which does not.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isAutomatic } from './automatic.ts'
import { scanHeader } from './header-scan.ts'

const judged = (text: string) => isAutomatic(scanHeader(Buffer.from(`${text}\r\n\r\nHello.\r\n`)))

const automatic = [
  'Auto-Submitted: auto-generated',
  'auto-submitted:auto-replied',
  'AUTO-SUBMITTED: AUTO-NOTIFIED; owner-email="a@far.test"',
  'Auto-Submitted: (by a program)\r\n auto-replied (rejected)',
  'Auto-Submitted: something-new',
  'Auto-Submitted:',
  'Auto-Submitted: (no',
  'Auto-Submitted: no\r\nAuto-Submitted: auto-replied',
  'Precedence: bulk',
  'precedence: LIST',
  'Precedence: first-class\r\nPrecedence: junk (mail)',
  'List-Id: Friends <friends.far.test>',
  'Subject: Hello\r\nList-ID:',
  'List-Unsubscribe: <mailto:leave@far.test>',
  'Feedback-ID: 1:campaign:far',
  'X-Auto-Response-Suppress: OOF, AutoReply',
  'From: Shop <no-reply@far.test>',
  'From: noreply@far.test',
  'From: NoReply-Orders@far.test',
  'From: shop.no_reply+7@far.test',
  'From: do-not-reply@far.test\r\nReply-To: ada@far.test',
  'From: donotreply1@far.test',
]
for (const text of automatic)
  test(`a mail is automatic: ${JSON.stringify(text)}`, () => {
    assert.equal(judged(text), true)
  })

const personal = [
  'Subject: Hello',
  'Auto-Submitted: no',
  'Auto-Submitted: NO (really)',
  'Auto-Submitted: no; reason=none',
  'Precedence: first-class',
  'Precedence: urgent',
  'X-List-Id: friends.far.test',
  'X-List-Unsubscribe: <mailto:leave@far.test>',
  'X-Auto-Response-Suppress: none',
  'From: "no-reply@far.test" <ada@far.test>',
  'From: casino-reply@far.test',
  'From: replies@no-reply.far.test',
  'Reply-To: no-reply@far.test',
  'Subject: Auto-Submitted: auto-replied',
]
for (const text of personal)
  test(`a mail is not automatic: ${JSON.stringify(text)}`, () => {
    assert.equal(judged(text), false)
  })

test('automatic: fields within the body do not count', () => {
  assert.equal(
    isAutomatic(scanHeader(Buffer.from('Subject: Hello\r\n\r\nAuto-Submitted: auto-replied\r\n'))),
    false,
  )
})

test('automatic: any bytes get a verdict without an exception', () => {
  const names = fc.constantFrom('Auto-Submitted', 'Precedence', 'List-Id', 'From', 'X-Auto-Response-Suppress')
  const field = fc
    .tuple(names, fc.uint8Array({ maxLength: 40 }))
    .map(([name, bytes]) => Buffer.concat([Buffer.from(`${name}: `), bytes, Buffer.from('\r\n')]))
  fc.assert(
    fc.property(fc.array(field), (fields) => {
      assert.equal(typeof isAutomatic(scanHeader(Buffer.concat(fields))), 'boolean')
    }),
  )
})
