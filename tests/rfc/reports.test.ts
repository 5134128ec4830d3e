// Reads real-world reports: the examples of the RFCs, another reader's readings, and Sisimai's bounces.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { meaningOf, meaningOfFeedback } from '../../src/flow/reports/report-meaning.ts'
import { readReport } from '../../src/mail/bounce/report.ts'
import { parseMail } from '../../src/mail/read/parse.ts'

const testdata = resolve(
  import.meta.dirname,
  '../..',
  process.env['POSTHORN_TESTDATA'] ?? '../shared/testdata',
)

/** Returns a suite's folder. If it is absent, skips the test with a reason, or fails in CI. */
function suite(name: string, skip: (reason: string) => void): string | null {
  const folder = join(testdata, name)
  if (existsSync(folder)) return folder
  assert.ok(!process.env['CI'], `${folder} is absent`)
  skip(`${folder} is absent: set POSTHORN_TESTDATA`)
  return null
}

test('RFC 3464: each report of the suite yields its recipients’ results', (t) => {
  const folder = suite('dsn-arf/rfc3464', (reason) => t.skip(reason))
  if (!folder) return
  const wanted: Record<string, [address: string, action: string, enhanced: string, code: number | null][]> = {
    '1.eml': [['louisl@larry.slip.umd.edu', 'failed', '4.0.0', 426]],
    '2.eml': [
      ['arathib@vnet.ibm.com', 'failed', '5.0.0', 550],
      ['johnh@hpnjld.njd.hp.com', 'delayed', '4.0.0', null],
      ['wsnell@sdcc13.ucsd.edu', 'failed', '5.0.0', 550],
    ],
    '3.eml': [['nair_s', 'failed', '5.0.0', null]],
    '4.eml': [['thomas@de-montfort.ac.uk', 'delayed', '4.0.0', null]],
    '5.eml': [['recipient@domain.com', 'failed', '5.0.0', 552]],
    '6.eml': [['redacted@example.com', 'failed', '5.4.1', 550]],
    'obsolete_arrival_date.eml': [['user@example.com', 'failed', '5.1.1', 550]],
  }
  assert.deepEqual(readdirSync(folder).sort(), Object.keys(wanted).sort())
  for (const [name, want] of Object.entries(wanted)) {
    const report = readReport(readFileSync(join(folder, name)))
    assert.equal(report?.kind, 'delivery', name)
    const seen = report.recipients.map(({ addresses, action, enhanced, code }) => [
      addresses[0],
      action,
      enhanced,
      code,
    ])
    assert.deepEqual(seen, want, name)
  }
})

test('RFC 5965: we agree with another reader about every feedback report', (t) => {
  const folder = suite('dsn-arf/arf', (reason) => t.skip(reason))
  if (!folder) return
  const mails = readdirSync(folder).filter((name) => name.endsWith('.eml'))
  for (const name of mails) {
    const oracle = JSON.parse(readFileSync(join(folder, name.replace('.eml', '.json')), 'utf8'))
    const report = readReport(readFileSync(join(folder, name)))
    assert.equal(report?.kind, 'feedback', name)
    assert.equal(report.feedbackType.replace('-', ''), oracle.feedback_type.toLowerCase(), name)
    assert.equal(report.userAgent, oracle.user_agent, name)
    assert.equal(report.arrivedAt ? report.arrivedAt.getTime() / 1000 : null, oracle.arrival_date, name)
    if (oracle.reporting_mta) assert.equal(report.reportedBy, oracle.reporting_mta, name)
    if (oracle.original_rcpt_to)
      assert.equal(report.addresses[0], oracle.original_rcpt_to.replace(/[<>]/g, ''), name)
  }
  t.diagnostic(`${mails.length} feedback reports agree`)
})

interface Expectation {
  status: string
  reason: string
  hardbounce: boolean
}

interface Bounce {
  /** The text for people, and the fields of the status part that describe a recipient. */
  said: string
  expected: Expectation
  isHard: boolean
}

const deadStatus = /(?<![\d.])5\.1\.(?:1|2|3|6|10)(?![\d.])/
const neverDeadStatus = /(?<![\d.])5\.[247]\.\d/
const anyRefusal = /(?<![\w.:/-])5[0-5]\d(?![\w.])|(?<![\d.])5\.\d\.\d{1,3}(?![\d.])/
const anyWordOfNobody =
  /unknown|no such|not exist|invalid|not found|not recogni|not listed|not have an? |doesn't have an? |見つかりません/i
const afterMessage = /end of data|^DATA\r?$/im

/**
 * Our rules that suppress, searched in the whole mail: a dead status, or a permanent refusal of an unknown user at RCPT.
 */
const allowing: [rule: string, holds: (bounce: Bounce) => boolean][] = [
  ['a dead status suppresses, whatever the words', ({ said }) => deadStatus.test(said)],
  [
    'a permanent refusal of a user who is unknown suppresses',
    ({ said }) =>
      anyRefusal.test(said) &&
      anyWordOfNobody.test(said) &&
      !neverDeadStatus.test(said) &&
      !afterMessage.test(said),
  ],
]

/** Reasons why a bounce that Sisimai calls hard does not suppress here. */
const forbidding: typeof allowing = [
  ['5.2.x, 5.4.x and 5.7.x never suppress', ({ expected: { status } }) => /^5\.[247]\.\d/.test(status)],
  ['a delay suppresses nobody', ({ said }) => /^action: *delayed/im.test(said)],
  [
    'a host that is unknown suppresses by 5.1.2 alone',
    ({ said, expected: { reason } }) => /^(?:hostunknown|notaccept)$/.test(reason) && !deadStatus.test(said),
  ],
  ['a refusal after RCPT suppresses by its status alone', ({ said }) => afterMessage.test(said)],
  ['words without a permanent code or status are no permanent refusal', ({ said }) => !anyRefusal.test(said)],
  ['a refusal that does not speak of an unknown user', ({ said }) => !anyWordOfNobody.test(said)],
]

/** Kinds that are not bounces, with the report that we read them as. */
const others = new Map([
  ['feedback', 'feedback'],
  ['vacation', undefined],
  ['delivered', undefined],
])

function saidIn(raw: Buffer): string {
  const ofStatus = raw.toString('latin1').match(/^(?:action|status|diagnostic-code):.*(?:\r?\n[ \t]+.*)*/gim)
  const { text } = parseMail(raw)
  return [text.split(/^(?:return-path|received):/im)[0], ...(ofStatus ?? [])].join('\n')
}

test('check 47: Sisimai’s bounces are hard or soft as published, or by our rules', (t) => {
  const folder = suite('bounce-sisimai', (reason) => t.skip(reason))
  if (!folder) return
  const expected: Record<string, Expectation[]> = JSON.parse(
    readFileSync(join(folder, 'expected.json'), 'utf8'),
  )
  const differing = new Map<string, string[]>()
  const forbidden: string[] = []
  let [equal, count] = [0, 0]
  for (const [name, [expectation]] of Object.entries(expected)) {
    const raw = readFileSync(join(folder, 'eml', name))
    const report = readReport(raw)
    const { reason, hardbounce } = expectation!
    if (others.has(reason)) {
      assert.equal(report?.kind, others.get(reason), name)
      continue
    }
    count++
    const recipients = report?.kind === 'delivery' ? report.recipients : []
    const isHard = recipients.some((recipient) => meaningOf(recipient)?.suppresses)
    const bounce = { said: saidIn(raw), expected: expectation!, isHard }
    const allowed = allowing.find(([, holds]) => holds(bounce))
    if (isHard && !allowed) forbidden.push(name)
    if (recipients.length > 0 && isHard === hardbounce) equal++
    else {
      const rule = isHard ? allowed : recipients.length > 0 && forbidding.find(([, holds]) => holds(bounce))
      const why = rule ? rule[0] : 'not understood'
      differing.set(why, [...(differing.get(why) ?? []), name])
    }
  }
  const misread = differing.get('not understood')?.length ?? 0
  const percent = (of: number) => `${of} of ${count} (${((100 * of) / count).toFixed(1)} %)`
  t.diagnostic(`${percent(equal)} as Sisimai, ${percent(count - misread)} as it says or as our rules do`)
  for (const [rule, names] of differing) t.diagnostic(`  ${rule}: ${names.join(', ')}`)
  assert.ok(count >= 170)
  assert.deepEqual(forbidden, [], 'what suppresses though no rule says so')
  assert.ok((count - misread) / count >= 0.97)
})

test('RFC 5965: each feedback type leads to its suppression, or to none', () => {
  assert.equal(meaningOfFeedback('abuse')?.suppresses, 'complaint')
  assert.equal(meaningOfFeedback('not-spam')?.suppresses, null)
  assert.equal(meaningOfFeedback('opt-out')?.suppresses, 'unsubscribe')
  assert.equal(meaningOfFeedback('auth-failure'), null)
})
