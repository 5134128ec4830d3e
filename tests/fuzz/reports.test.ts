// Reading hostile reports of any bytes ends in linear time and returns bounded, well-formed values.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { meaningOf } from '../../src/flow/reports/report-meaning.ts'
import { type ReportAddress, readReport } from '../../src/mail/bounce/report.ts'
import { inCpuTime } from '../support/cpu-time.ts'

const longestMs = 2000
const dsn =
  'Content-Type: multipart/report; boundary=b\r\n\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\n'
const arf =
  'Content-Type: multipart/report; boundary=b\r\n\r\n--b\r\nContent-Type: message/feedback-report\r\n\r\n'
const original = '\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n'
const worded = 'From: MAILER-DAEMON@far.test\r\nSubject: failure notice\r\n\r\n'

const open = 'Final-Recipient: rfc822; a@b\r\nAction: failed\r\nStatus: 5.0.0\r\n\r\n'

function readInTime(raw: Buffer, sentTo: ReportAddress = 'return_path'): void {
  const read = () => {
    const report = readReport(raw, sentTo)
    return { report, meanings: report?.kind === 'delivery' ? report.recipients.map(meaningOf) : [] }
  }
  const { report, meanings } = inCpuTime(longestMs, read, raw.toString('latin1', 0, 200))
  const json = JSON.stringify(report)
  assert.ok(json.isWellFormed() && !json.includes('\\u0000') && !json.includes('\\ud8'))
  assert.ok(meanings.length <= 1000)
  if (report?.kind === 'delivery') {
    for (const { addresses, enhanced, code, text } of report.recipients) {
      assert.ok(addresses.length <= 3 && text.length <= 1000 && !/[\r\n]/.test(text))
      assert.ok(enhanced === null || /^[245]\.\d\.\d{1,3}$/.test(enhanced))
      assert.ok(code === null || (code >= 400 && code < 600))
    }
  }
  if (report?.kind === 'feedback') {
    assert.ok(report.addresses.length <= 20 && report.returnPaths.length <= 20)
    assert.ok((report.userAgent?.length ?? 0) <= 255 && (report.reportedBy?.length ?? 0) <= 255)
  }
}

const token = `bounce-${'a'.repeat(48)}@`
const structures: Record<string, string> = {
  '25 MB of empty lines': `${dsn}${'\r\n'.repeat(12_000_000)}--b--`,
  'a million groups': `${dsn}${'Final-Recipient: rfc822;a@b\r\nAction: failed\r\n\r\n'.repeat(500_000)}--b--`,
  'a million fields': `${dsn}Final-Recipient: x\r\n${'Action: failed\r\n'.repeat(1_000_000)}\r\n--b--`,
  'a diagnostic of 10 MB': `${dsn}Action: failed\r\nDiagnostic-Code: smtp; ${'5.1.1 550 '.repeat(1_000_000)}\r\n\r\n--b--`,
  '2,000 parts': `${dsn.slice(0, 46)}${'--b\r\nContent-Type: message/delivery-status\r\n\r\nAction: failed\r\n'.repeat(3_000)}`,
  'a million return paths': `${arf}${`X: ${token}far.test\r\n`.repeat(300_000)}${original}${`Y: ${token}x\r\n`.repeat(300_000)}`,
  'nearly return paths': `${arf}X: ${'bounce-'.repeat(1_000_000)}\r\n${original}${'bounce-a'.repeat(1_000_000)}`,
  'a million addresses': `${arf}Original-Rcpt-To: ${'a@b.test,'.repeat(500_000)}\r\n${original}To: ${'a@b.test,'.repeat(500_000)}\r\n\r\n`,
  'base64 of nothing': `${dsn.slice(0, -2)}Content-Transfer-Encoding: base64\r\n\r\n${'!=\r\n'.repeat(3_000_000)}--b--`,
}

for (const [name, structure] of Object.entries(structures))
  test(`check 59: a report is read in bounded time: ${name}`, () =>
    readInTime(Buffer.from(structure, 'latin1')))

const runs = [
  ...[
    'a@',
    '@',
    'a',
    'a@b ',
    '<a@b>:\n',
    '-',
    '--',
    '-- ',
    '---- below this line ',
    '550 ',
    '5.1.1 ',
    '5',
    '5.',
    '.',
  ],
  ...[
    'x-failed-recipients: a@b\n',
    'message ',
    'deliver ',
    'delivery fail ',
    'return ',
    ' ',
    '\n',
    '\t',
    '\u0000',
    'ÿ',
    '"',
    '(',
  ],
  ...['550: ', 'said: 550\n', "550-'5.7.1 ", 'a@b... ', 'user ', 'ユーザ', '\\x{', '\\x{F6}'],
  ...['end of\n', 'in reply to ', '>>> DATA\n', 'MAIL ', 'could not be ', 'error deliver ', 'Received:\n'],
]

test('check 60: runs in every place of a report take linear time', () => {
  for (const run of runs) {
    const long = run.repeat(Math.floor(250_000 / run.length))
    const places = [
      `${worded}${long}`,
      `From: ${long}\r\nSubject: ${long}\r\nX-Failed-Recipients: ${long}\r\n\r\nfailed`,
      `${dsn}Final-Recipient: rfc822;${long}\r\nStatus: ${long}\r\nAction: ${long}\r\n\r\n--b--`,
      `${dsn}Action: failed\r\nDiagnostic-Code: ${long}\r\n\r\n--b--`,
      `${dsn.replace('--b', `--b\r\n\r\n${long}\r\n--b`)}${open.repeat(500)}--b--`,
      `Subject: x\r\n\r\n${long}`,
      `${arf}Feedback-Type: ${long}\r\nUser-Agent: ${long}\r\nReporting-MTA: ${long}\r\nArrival-Date: ${long}\r\n${original}Return-Path: ${long}\r\n\r\n`,
    ]
    const charset = run === 'ユーザ' ? 'utf8' : 'latin1'
    for (const place of places) readInTime(Buffer.from(place, charset))
    readInTime(Buffer.from(`Subject: x\r\n\r\n${long}\r\nReceived: ${long}`), 'feedback')
  }
})

test('any bytes, and reports with swapped parts, are read without an exception', () => {
  const words = fc.constantFrom(
    ...[
      'Final-Recipient: rfc822; a@far.test',
      'Original-Recipient: ;',
      'Action: failed',
      'Action:',
      'Status: 5.1.1',
      '--b',
    ],
    ...[
      'Status: 9.9.9',
      'Diagnostic-Code: smtp; 550 5.1.1 x',
      'Feedback-Type: abuse',
      `Original-Mail-From: <${token}far.test>`,
    ],
    ...[
      '',
      '',
      '<a@far.test>: 550 no such user',
      'permanent error',
      '--- Below this line is a copy',
      '--b--',
      'To: a@b, c@d',
    ],
  )
  const lines = fc.array(fc.oneof(words, fc.string()), { maxLength: 30 })
  const mail = fc
    .tuple(fc.constantFrom(dsn, arf, worded, `${arf}\r\n${original}`, ''), lines)
    .map(([start, text]) => Buffer.from(start + text.join('\r\n')))
  const property = fc.property(fc.oneof(mail, fc.uint8Array({ maxLength: 500 }).map(Buffer.from)), (raw) =>
    readInTime(raw),
  )
  fc.assert(property, { numRuns: 2_000 })
})
