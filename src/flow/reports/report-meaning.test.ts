// The effect of a report on a recipient, and which reports suppress.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RecipientReport } from '../../mail/bounce/recipient-report.ts'
import { meaningOf } from './report-meaning.ts'

type Case = [
  report: Pick<RecipientReport, 'action' | 'enhanced' | 'code' | 'text'>,
  meaning: string | null,
  suppresses?: 'suppresses',
]

const failed = (enhanced: string | null, code: number | null, text = '') => ({
  action: 'failed' as const,
  enhanced,
  code,
  text,
})

const cases: Case[] = [
  ...['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10'].map((status): Case => {
    return [failed(status, null), 'bounced hard_bounce hard_bounce', 'suppresses']
  }),
  [failed('5.0.0', 550, '550 user unknown'), 'bounced hard_bounce hard_bounce', 'suppresses'],
  [failed(null, 550, '550 no such user here'), 'bounced hard_bounce hard_bounce', 'suppresses'],
  [failed('5.2.1', 550, '550 5.2.1 user unknown'), 'bounced hard_bounce hard_bounce'],
  [failed('5.2.2', 552, '552 5.2.2 mailbox full'), 'bounced mailbox_full soft_bounce_expired'],
  [failed('5.4.4', null), 'bounced dns hard_bounce'],
  [failed('5.7.1', 550, '550 5.7.1 access denied'), 'bounced policy policy_rejected'],
  // Given up after temporary refusals, whatever their reason.
  [failed('4.1.1', 450, '450 4.1.1 user unknown'), 'bounced other soft_bounce_expired'],
  [failed('4.4.7', null), 'bounced expired soft_bounce_expired'],
  // Without a code or status, the failure counts as temporary, whatever the text says.
  [failed(null, null, 'user unknown'), 'bounced other soft_bounce_expired'],
  [{ action: 'delayed', enhanced: '5.1.1', code: 550, text: 'user unknown' }, 'deferred hard_bounce null'],
  [{ action: 'delayed', enhanced: '4.4.1', code: null, text: '' }, 'deferred network null'],
  [{ action: 'delivered', enhanced: '2.0.0', code: null, text: '' }, null],
]

for (const [report, wanted, suppresses] of cases)
  test(`check 47: a report means what its fields say: ${report.action} ${report.enhanced} ${report.code} ${report.text}`, () => {
    const meaning = meaningOf({ ...report, stage: 'rcpt', addresses: [] })
    const seen = meaning && `${meaning.type} ${meaning.classification} ${meaning.failureCode}`
    assert.equal(seen, wanted)
    assert.equal(meaning?.suppresses ?? false, suppresses === 'suppresses')
  })
