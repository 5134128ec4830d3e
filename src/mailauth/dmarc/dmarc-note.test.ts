// Which signatures of a mail a report lists, and in which order.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dmarcNoteOf } from './dmarc-note.ts'
import type { DmarcVerdict } from './evaluate.ts'
import { parseDmarcRecord } from './record.ts'

const verdict: DmarcVerdict = {
  result: 'pass',
  reason: '',
  policy: 'reject',
  disposition: 'none',
  override: null,
  domain: 'news.shop.test',
  organizationalDomain: 'shop.test',
  policyDomain: 'shop.test',
  record: parseDmarcRecord('v=DMARC1; p=reject; rua=mailto:reports@shop.test'),
  alignedBy: ['dkim'],
  rua: ['mailto:reports@shop.test'],
  asked: [],
}
const mail = { verdict, sourceIp: '192.0.2.7', envelopeFrom: '', spf: null, applied: 'none' as const }

test('passed signatures come first, those of the author’s domain and organization before others', () => {
  const dkim = [
    { domain: 'news.shop.test', selector: 'broken', result: 'fail' as const },
    { domain: 'notshop.test', selector: 'other', result: 'pass' as const },
    { domain: 'shop.test', selector: 'above', result: 'pass' as const },
    { domain: 'mail.shop.test', selector: 'aside', result: 'pass' as const },
    { domain: 'news.shop.test', selector: 'own', result: 'pass' as const },
  ]
  const note = dmarcNoteOf({ ...mail, dkim })
  const selectors = note?.mail.dkim.map(({ selector }) => selector)
  assert.deepEqual(selectors, ['own', 'above', 'aside', 'other', 'broken'])
})

test('a report lists ten of many signatures', () => {
  const dkim = Array.from({ length: 30 }, (_, index) => ({
    domain: index === 29 ? 'shop.test' : 'mailer.test',
    selector: `s${index}`,
    result: 'pass' as const,
  }))
  const note = dmarcNoteOf({ ...mail, dkim })
  assert.deepEqual([note?.mail.dkim.length, note?.mail.dkim[0]?.selector], [10, 's29'])
})
