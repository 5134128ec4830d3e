// Reports as they are in the world: the examples of the RFCs, another reader's readings, and Sisimai's bounces.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { meaningOf, meaningOfFeedback } from '../../src/flow/suppress.ts'
import { readReport } from '../../src/mail/report.ts'

const testdata = resolve(
  import.meta.dirname,
  '../..',
  process.env['POSTHORN_TESTDATA'] ?? '../shared/testdata',
)

/** The folder of a suite; skipped in words where it is absent, an error in CI. */
function suite(name: string, skip: (reason: string) => void): string | null {
  const folder = join(testdata, name)
  if (existsSync(folder)) return folder
  assert.ok(!process.env['CI'], `${folder} is absent`)
  skip(`${folder} is absent: set POSTHORN_TESTDATA`)
  return null
}

test('RFC 3464: what each report of the suite says of each recipient', (t) => {
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

test('RFC 5965: agrees with another reader about every feedback report', (t) => {
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

/** Mails that are not read as Sisimai reads them, each with the reason. */
const judged: Record<string, string> = {
  'lhost-amazonses-13.eml': 'a notification in JSON, of a success',
  'lhost-fml-03.eml': 'a loop alert of a mailing list, from no mail system',
  'lhost-kddi-02.eml': 'a mail without any word of a bounce in sender or subject',
  'lhost-kddi-03.eml': 'a mail without any word of a bounce in sender or subject',
  'lhost-opensmtpd-03.eml': 'no code and no word that says that it failed for good',
  'lhost-x3-02.eml': 'no code and no word that says that it failed for good',
}

/** Suppressed here though Sisimai does not call them hard: the status of each is 5.1.1, or its words say unknown. */
const harder: Record<string, string> = {
  'lhost-gsuite-08.eml': 'RCPT refused as user unknown',
  'lhost-mailfoundry-02.eml': 'status 5.1.1',
  'lhost-postfix-01.eml': 'status 5.1.1',
  'rfc3464-01.eml': 'status 5.1.1',
  'rhost-nttdocomo-03.eml': 'RCPT refused as unknown user',
}

test('check 47: Sisimai’s bounces are found, and none that it calls soft suppresses but by its status', (t) => {
  const folder = suite('bounce-sisimai', (reason) => t.skip(reason))
  if (!folder) return
  const expected: Record<string, Expectation[]> = JSON.parse(
    readFileSync(join(folder, 'expected.json'), 'utf8'),
  )
  let [read, hard, hardRead] = [0, 0, 0]
  for (const [name, expectations] of Object.entries(expected)) {
    const report = readReport(readFileSync(join(folder, 'eml', name)))
    const { reason } = expectations[0]!
    const kind = reason === 'feedback' ? 'feedback' : reason === 'vacation' ? undefined : 'delivery'
    if (report?.kind === kind) read++
    else assert.ok(name in judged, `${name} is ${report?.kind}, and Sisimai says ${reason}`)
    if (report?.kind !== 'delivery') continue
    const suppresses = report.recipients.some((recipient) => meaningOf(recipient)?.suppresses)
    const isHard = expectations.some(({ hardbounce }) => hardbounce)
    if (isHard) hard++
    if (isHard && suppresses) hardRead++
    // lhost-opensmtpd-02 is of two recipients, of which Sisimai's expectation has the first.
    if (suppresses && !isHard) assert.ok(name in harder || name === 'lhost-opensmtpd-02.eml', name)
  }
  const count = Object.keys(expected).length
  t.diagnostic(
    `${read} of ${count} are what Sisimai says they are; ${hardRead} of ${hard} hard ones suppress`,
  )
  assert.ok(read / count >= 0.95)
  assert.ok(hardRead / hard >= 0.6)
})

test('RFC 5965: what its types are taken for', () => {
  assert.equal(meaningOfFeedback('abuse')?.suppresses, 'complaint')
  assert.equal(meaningOfFeedback('not-spam')?.suppresses, null)
  assert.equal(meaningOfFeedback('opt-out')?.suppresses, 'unsubscribe')
  assert.equal(meaningOfFeedback('auth-failure'), null)
})
