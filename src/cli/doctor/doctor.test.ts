// The doctor's verdicts on certificates and DNS answers, and how it prints them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ManagedKey } from '../../flow/domains/managed-keys.ts'
import { type Check, checkPages, evaluateCertificate, failed, ok, skipped, warning } from './checks.ts'
import { checkDkimRecord, checkMxRecord, checkRecords, checkSpfRecord, type ManagedDomain } from './dns.ts'
import { formatCheck } from './doctor.ts'

const now = new Date('2026-11-21T10:00:00Z')

for (const [what, validTo, isForHost, status, word] of [
  ['good for long', 'Nov 21 10:00:00 2027 GMT', true, 'ok', /2027-11-21/],
  ['about to end', 'Nov 30 10:00:00 2026 GMT', true, 'warning', /2026-11-30/],
  ['expired', 'Nov 21 09:59:59 2026 GMT', true, 'failed', /expired/],
  ['for another name', 'Nov 21 10:00:00 2027 GMT', false, 'warning', /not valid for mx\.example\.com/],
] as const)
  test(`the check of a certificate that is ${what} reports ${status}`, () => {
    const certificate = {
      validTo,
      subject: 'O=x\nCN=mx.example.com',
      checkHost: () => (isForHost ? 'mx.example.com' : undefined),
    }
    const check = evaluateCertificate(certificate, 'mx.example.com', now)
    assert.equal(check.status, status)
    assert.match(check.detail, word)
    assert.match(check.detail, /^O=x, CN=mx\.example\.com/)
  })

const mx = { name: 'example.com', preference: 10, value: 'mx.example.com' }
const value = 'v=DKIM1; k=rsa; p=ABCD'
const dkim: ManagedKey = {
  selector: 'ph1',
  algorithm: 'rsa-sha256',
  state: 'active',
  publishedUntil: null,
  name: 'ph1._domainkey.example.com',
  value,
  zoneLine: `ph1._domainkey.example.com. 3600 IN TXT "${value}"`,
}
const pending: ManagedKey = { ...dkim, state: 'pending' }
const retired: ManagedKey = { ...dkim, state: 'retired', publishedUntil: '2026-11-28T10:00:00.000Z' }
const spf = { name: 'example.com', value: 'v=spf1 a:mx.example.com -all' }
const found = <Found>(...records: Found[]) => ({ status: 'ok' as const, records })
const missing = { status: 'nxdomain' as const }
const silent = { status: 'temporary' as const, reason: 'DNS did not answer in time' }

const answers: [string, Check, Check['status'], RegExp][] = [
  [
    'MX that is ours',
    checkMxRecord(mx, found({ exchange: 'mx.example.com', preference: 5 })),
    'ok',
    /mx\.example\.com/,
  ],
  [
    'MX of another',
    checkMxRecord(mx, found({ exchange: 'mx.other.test', preference: 5 })),
    'failed',
    /mx\.other\.test, not here/,
  ],
  ['no MX', checkMxRecord(mx, missing), 'failed', /has no MX/],
  ['MX unknown', checkMxRecord(mx, silent), 'warning', /in time/],
  ['DKIM, spaced', checkDkimRecord(dkim, found('v=DKIM1; p = AB CD ; k=rsa')), 'ok', /the signing key/],
  ['DKIM of another key', checkDkimRecord(dkim, found('v=DKIM1; p=WXYZ')), 'failed', /another key/],
  ['no DKIM', checkDkimRecord(dkim, { status: 'nodata' }), 'failed', /is missing/],
  [
    'a new key in DNS',
    checkDkimRecord(pending, found(value)),
    'ok',
    /the new key, which signs within seconds/,
  ],
  ['a new key not in DNS', checkDkimRecord(pending, missing), 'warning', /waits to be published/],
  ['a former key in DNS', checkDkimRecord(retired, found(value)), 'ok', /remove it after 2026-11-28/],
  ['a former key not in DNS', checkDkimRecord(retired, missing), 'warning', /in transit until 2026-11-28/],
  [
    'SPF among others',
    checkSpfRecord(spf, found('something=else', 'v=spf1 mx -all')),
    'ok',
    /v=spf1 mx -all/,
  ],
  ['two SPF', checkSpfRecord(spf, found('v=spf1 -all', 'v=spf1 mx -all')), 'failed', /2 SPF records/],
  ['pages that are not built', checkPages({ roles: ['dashboard'] }, '/nowhere'), 'warning', /not built/],
  ['a text that only begins like SPF', checkSpfRecord(spf, found('v=spf10 -all')), 'failed', /no SPF record/],
]

for (const [what, check, status, words] of answers)
  test(`the check of ${what} reports ${status}`, () => {
    assert.equal(check.status, status)
    assert.match(check.detail, words)
    assert.equal(check.mend === null, status === 'ok')
  })

const managed: ManagedDomain = {
  domain: 'example.com',
  mailHost: 'mx.example.com',
  mx,
  dkim: [dkim],
  spf,
  dmarc: { name: '_dmarc.example.com', value: 'v=DMARC1; p=none' },
}

test('the doctor names the records to publish even if DNS is unreachable', async () => {
  const checks = await checkRecords(managed, { resolve: async () => silent as never })
  assert.ok(checks.every(({ status }) => status === 'warning'))
  assert.deepEqual(
    checks.map(({ mend }) => mend!.split('publish: ')[1]),
    [
      "mx.example.com A <this machine's address>",
      'example.com MX 10 mx.example.com',
      dkim.zoneLine,
      `example.com TXT "${spf.value}"`,
      '_dmarc.example.com TXT "v=DMARC1; p=none"',
    ],
  )
})

test('each record is looked up and judged by itself', async () => {
  const published = new Map<string, object>([
    ['A mx.example.com', found({ address: '192.0.2.1', ttlSeconds: 60 })],
    ['MX example.com', found({ exchange: 'mx.example.com', preference: 10 })],
    [`TXT ${dkim.name}`, found(dkim.value)],
    ['TXT example.com', found(spf.value)],
  ])
  const resolve = async (type: string, name: string) => (published.get(`${type} ${name}`) ?? missing) as never
  const checks = await checkRecords(managed, { resolve })
  assert.deepEqual(
    checks.map(({ name, status }) => [name, status]),
    [
      ['DNS: mail host', 'ok'],
      ['DNS: MX', 'ok'],
      ['DNS: DKIM ph1', 'ok'],
      ['DNS: SPF', 'ok'],
      ['DNS: DMARC', 'warning'],
    ],
  )
  assert.equal(checks[4]!.mend, 'publish: _dmarc.example.com TXT "v=DMARC1; p=none"')
})

for (const [check, line] of [
  [ok('blobs', 'fine'), '✓ blobs             fine'],
  [skipped('clamd', 'later'), '- clamd             later'],
  [warning('DNS: SPF', 'odd', 'publish it'), '! DNS: SPF          odd. Fix: publish it'],
  [failed('database', 'gone', 'start it'), '✗ database          gone. Fix: start it'],
] as const)
  test(`a check that is ${check.status} prints as one line`, () =>
    assert.equal(
      formatCheck(check, (_style, text) => text),
      line,
    ))
