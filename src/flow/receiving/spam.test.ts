// Rspamd's actions as replies: `reject` refuses, greylisting defers, and all other actions accept the mail.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { replyLine } from '../../smtp/reply.ts'
import { spamRecord, spamReply } from './spam.ts'

const actions: [action: string, line: string | null][] = [
  ['reject', '550 5.7.1 Message rejected as spam'],
  ['greylist', '451 4.7.1 Message temporarily deferred, try again later'],
  ['soft reject', '451 4.7.1 Message temporarily deferred, try again later'],
  ['no action', null],
  ['add header', null],
  ['rewrite subject', null],
  ['quarantine', null],
  ['Reject', null],
  ['constructor', null],
]

for (const [action, line] of actions)
  test(`the action ${action} yields ${line ?? 'acceptance'}`, () => {
    const reply = spamReply({ action })
    assert.equal(reply && replyLine(reply), line)
  })

test('the record of a mail keeps score, action and symbols', () => {
  const findings = { score: 6.5, requiredScore: 15, action: 'add header', symbols: ['OFFER'] }
  assert.deepEqual(spamRecord(findings), { score: 6.5, action: 'add header', symbols: ['OFFER'] })
})
