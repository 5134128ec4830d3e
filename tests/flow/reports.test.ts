// Reports about sent mail: they change only the delivery that their token proves, and only once. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { existsSync, readFileSync, renameSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { newId, newUuid, type SubmissionId } from '../../src/base/ids.ts'
import { checkOperatorMail } from '../../src/cli/doctor/operator-mail.ts'
import { dropOldMail, readReports } from '../../src/flow/reports/read-report.ts'
import { ParsePool } from '../../src/mail/parse-pool.ts'
import type { MailBytes } from '../../src/mail/parse-worker.ts'
import { returnPathOf } from '../../src/mail/return-path.ts'
import { insertReceived } from '../../src/store/mailbox/spool.ts'
import type { Acceptance, Submission } from '../support/api.ts'
import { joinAsNode } from '../support/claims.ts'
import { registerDomain } from '../support/customer-domain.ts'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, send, startNode, type TestCaller, type TestNode, untilStates } from '../support/node.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

const suite = join(
  resolve(import.meta.dirname, '../..', process.env['POSTHORN_TESTDATA'] ?? '../shared/testdata'),
  'dsn-arf',
)
const dayMs = 86_400_000

interface Stage {
  node: TestNode
  sink: Sink
}

const place = await makePlace({ after })
const sink = await startSink(place)
const env = {
  POSTHORN_DELIVERY: 'relay',
  POSTHORN_RELAY_URL: sink.url,
  POSTHORN_MAIL_HOST: 'mx.posthorn.test',
}
/** This node sends everything through one smarthost. */
const stage: Stage = { sink, node: await startNode(place, { env }) }
const unreadPlace = await makePlace({ after })
/** This node reads no reports by itself, and tests move its clock. */
const unread: Stage = { sink, node: await startNode(unreadPlace, { env, roles: ['api', 'mx', 'delivery'] }) }

interface Sending {
  caller: TestCaller
  accepted: Acceptance
  /** From the first transaction. */
  returnPath: string
  /** From each transaction. */
  returnPaths: string[]
}

/** Sends to the addresses, waits for the delivery, and returns the return paths that were used. */
async function deliver({ node, sink }: Stage, to: string[], by?: TestCaller): Promise<Sending> {
  const caller = by ?? (await node.createCaller())
  const accepted = await send(caller.api, await caller.api.createInbox(), to)
  await untilStates(caller.api, accepted.submission.id, ...to.map(() => 'delivered'))
  const copies = sink.copiesOf(accepted.message.internetMessageId)
  const returnPaths = [...new Set(copies.map(({ from }) => from))]
  return { caller, accepted, returnPath: returnPaths[0]!, returnPaths }
}

async function report({ node }: Stage, to: string, raw: string | Buffer): Promise<string> {
  const bytes = Buffer.isBuffer(raw) ? raw : Buffer.from(raw.replaceAll(/\r?\n/g, '\r\n'))
  const sent = await sendMail(node.smtp, { from: '', to, raw: bytes })
  return sent.outcome === 'accepted' ? 'accepted' : sent.reply
}

async function untilRead({ node }: Stage): Promise<void> {
  await until('all reports to be read', async () => {
    const waiting = await node.foundation.db.query(`select from kept_mail where purpose <> 'operator'`)
    return waiting.length === 0
  })
}

interface Event {
  type: string
  recipient: string | null
  response: string | null
  enhancedStatus: string | null
  classification: string | null
  attempt: number | null
}

/** The events that come from reports: they follow `delivered`, after the delivery's own events. */
async function told({ caller, accepted }: Sending): Promise<Event[]> {
  const path = `/v1/submissions/${accepted.submission.id}/events?limit=100`
  const { events } = await caller.api.want<{ events: Event[] }>(path)
  return events.filter(
    ({ type, attempt }) => ['bounced', 'deferred', 'complained'].includes(type) && attempt === null,
  )
}

async function statesOf({ caller, accepted }: Sending): Promise<string[]> {
  const submission = await caller.api.want<Submission>(`/v1/submissions/${accepted.submission.id}`)
  return submission.recipients.map(({ status }) => status)
}

interface Suppression {
  email: string
  reason: string
  submissionId: string | null
}

async function suppressionsOf({ api }: TestCaller): Promise<Suppression[]> {
  return (await api.want<{ suppressions: Suppression[] }>('/v1/suppressions')).suppressions
}

async function complaintsOf({ api }: TestCaller): Promise<Record<string, unknown>[]> {
  return (await api.want<{ complaints: Record<string, unknown>[] }>('/v1/complaints')).complaints
}

function dsn(recipients: { email: string; action?: string; status: string; diagnostic?: string }[]): string {
  const groups = recipients.map(
    ({ email, action = 'failed', status, diagnostic }) =>
      `Final-Recipient: rfc822; ${email}\nAction: ${action}\nStatus: ${status}\n${
        diagnostic ? `Diagnostic-Code: smtp; ${diagnostic}\n` : ''
      }`,
  )
  return `From: MAILER-DAEMON@far.test
Subject: Undelivered
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.far.test

${groups.join('\n')}
--b--
`
}

function arf(type: string, returnPath: string, recipient: string | null): string {
  return `From: feedback@far.test
Subject: Feedback
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary=b

--b
Content-Type: message/feedback-report

Feedback-Type: ${type}
User-Agent: Far/1.0
${recipient ? `Original-Rcpt-To: ${recipient}\n` : ''}Reporting-MTA: dns; mx.far.test
Arrival-Date: Thu, 8 Mar 2005 14:00:00 EDT

--b
Content-Type: message/rfc822

Return-Path: <${returnPath}>
Subject: Test

x
--b--
`
}

const userUnknown = (email: string) => ({ email, status: '5.1.1', diagnostic: '550 5.1.1 user unknown' })

/** The required effect of each mail of the suite on the message whose return path it came to. */
const wanted: Record<string, { to: string[]; states: string[]; events: string[]; suppressed: string[] }> = {
  'rfc3464/1.eml': {
    to: ['louisl@larry.slip.umd.edu'],
    states: ['bounced'],
    events: ['bounced 4.0.0'],
    suppressed: [],
  },
  'rfc3464/2.eml': {
    to: ['arathib@vnet.ibm.com', 'johnh@hpnjld.njd.hp.com', 'wsnell@sdcc13.ucsd.edu'],
    states: ['bounced', 'delivered', 'bounced'],
    events: ['bounced 5.0.0', 'deferred 4.0.0', 'bounced 5.0.0'],
    suppressed: ['wsnell@sdcc13.ucsd.edu'],
  },
  'rfc3464/3.eml': {
    to: ['nair_s@mr.timeplex.com'],
    states: ['bounced'],
    events: ['bounced 5.0.0'],
    // Only its text says that the address is invalid.
    suppressed: ['nair_s@mr.timeplex.com'],
  },
  'rfc3464/4.eml': {
    to: ['thomas@de-montfort.ac.uk'],
    states: ['delivered'],
    events: ['deferred 4.0.0'],
    suppressed: [],
  },
  'rfc3464/5.eml': {
    to: ['recipient@domain.com'],
    states: ['bounced'],
    events: ['bounced 5.0.0'],
    suppressed: [],
  },
  'rfc3464/6.eml': {
    to: ['redacted@example.com'],
    states: ['bounced'],
    events: ['bounced 5.4.1'],
    suppressed: [],
  },
  'rfc3464/obsolete_arrival_date.eml': {
    to: ['user@example.com'],
    states: ['bounced'],
    events: ['bounced 5.1.1'],
    suppressed: ['user@example.com'],
  },
  ...Object.fromEntries(
    ['rfc5965/1', 'rfc5965/2', 'rfc5965/3', 'rfc5965/4', 'arf/001', 'arf/002'].map((name) => [
      `${name}.eml`,
      {
        to: ['user@example.com'],
        states: ['delivered'],
        events: ['complained null'],
        suppressed: ['user@example.com'],
      },
    ]),
  ),
  // Authentication failure reports are no complaints.
  ...Object.fromEntries(
    ['arf/003', 'arf/004', 'arf/005'].map((name) => [
      `${name}.eml`,
      { to: ['user@example.com'], states: ['delivered'], events: [], suppressed: [] },
    ]),
  ),
}

/** Names the return path in the original of a feedback report, as mail servers record it there. */
function aboutReturnPath(raw: string, returnPath: string): string {
  if (/^Original-Mail-From:/im.test(raw))
    return raw.replace(/^(Original-Mail-From:).*$/im, (_, name) => `${name} <${returnPath}>`)
  return raw.replace(/^Received: from mailserver/m, (field) => `Return-Path: <${returnPath}>\n${field}`)
}

test('check 47: every published report moves only the message of its return path', async (t) => {
  if (!existsSync(suite)) {
    assert.ok(!process.env['CI'], `${suite} is absent`)
    return t.skip('the published suites are absent (POSTHORN_TESTDATA)')
  }
  const mails = await Promise.all(
    Object.entries(wanted).map(async ([name, want]) => {
      const raw = readFileSync(join(suite, name), 'latin1')
      return { name, want, raw, sending: await deliver(stage, want.to) }
    }),
  )
  const untouched = await deliver(stage, ['user@example.com', 'redacted@example.com'])
  for (const { name, raw, sending } of mails) {
    const isFeedback = !name.startsWith('rfc3464')
    const text = isFeedback ? aboutReturnPath(raw, sending.returnPath) : raw
    const to = isFeedback ? ['fbl@inbox.test'] : sending.returnPaths
    // The second copy changes nothing.
    for (const address of [...to, ...to]) assert.equal(await report(stage, address, text), 'accepted', name)
  }
  await untilRead(stage)
  for (const { name, want, sending } of mails) {
    assert.deepEqual(await statesOf(sending), want.states, name)
    const events = (await told(sending)).map(({ type, enhancedStatus }) => `${type} ${enhancedStatus}`)
    assert.deepEqual(events.sort(), [...want.events].sort(), name)
    const suppressions = await suppressionsOf(sending.caller)
    assert.deepEqual(suppressions.map(({ email }) => email).sort(), [...want.suppressed].sort(), name)
    for (const { submissionId } of suppressions) assert.equal(submissionId, sending.accepted.submission.id)
    const complaints = await complaintsOf(sending.caller)
    assert.equal(complaints.length, want.events.includes('complained null') ? 1 : 0, name)
  }
  assert.deepEqual(await statesOf(untouched), ['delivered', 'delivered'])
  assert.deepEqual(await suppressionsOf(untouched.caller), [])
  t.diagnostic(`${mails.length} of ${mails.length} mails of dsn-arf moved their message as decided`)
})

test('check 48: a report without a valid token moves nothing', async () => {
  const sending = await deliver(stage, ['user@example.com'])
  const { db, clock, secretBox } = stage.node.foundation
  const tables = ['suppression', 'complaint']
  const readAll = () =>
    Promise.all(tables.map((table) => db.query(`select * from ${table} order by organization_id, id`)))
  const before = await readAll()
  const submissionId = sending.accepted.submission.id as SubmissionId
  const [localPart = '', host = ''] = sending.returnPath.split('@')
  const last = localPart.endsWith('a') ? 'b' : 'a'
  const old = new Date(clock.nowMs() - 32 * dayMs)
  const forged = {
    changed: `${localPart.slice(0, -1)}${last}@${host}`,
    expired: returnPathOf(secretBox, { submissionId, position: 0 }, host, old),
    foreign: returnPathOf(secretBox, { submissionId, position: 0 }, 'bounce.far.test', clock.now()),
    bare: 'bounce@inbox.test',
  }
  const failure = dsn([userUnknown('user@example.com')])
  for (const [name, address] of Object.entries(forged)) {
    const here = `${address.split('@')[0]}@inbox.test`
    assert.match(await report(stage, here, failure), /^550 5\.1\.1 /, name)
    assert.equal(await report(stage, 'fbl@inbox.test', arf('abuse', here, 'user@example.com')), 'accepted')
  }
  // Genuine return paths of mail that was never sent, and a bounce at the complaints address.
  const unknown = { submissionId: newUuid<SubmissionId>(), position: 0 }
  const nowhere = returnPathOf(secretBox, unknown, host, clock.now())
  const beyond = returnPathOf(secretBox, { submissionId, position: 7 }, host, clock.now())
  for (const address of [nowhere, beyond]) {
    assert.equal(await report(stage, address, failure), 'accepted')
    assert.equal(await report(stage, 'fbl@inbox.test', arf('abuse', address, 'user@example.com')), 'accepted')
  }
  assert.equal(await report(stage, 'fbl@inbox.test', `${failure}${sending.returnPath}`), 'accepted')
  if (existsSync(suite)) {
    for (const name of Object.keys(wanted)) {
      const raw = readFileSync(join(suite, name), 'latin1')
      assert.equal(await report(stage, 'fbl@inbox.test', raw), 'accepted', name)
      assert.match(await report(stage, forged.changed, raw), /^550 /, name)
    }
  }
  // Mail to a return path that is no report, such as a vacation reply.
  const holiday =
    'From: user@example.com\nSubject: Automatic reply\nAuto-Submitted: auto-replied\n\nBack on Monday.\n'
  assert.equal(await report(stage, sending.returnPath, holiday), 'accepted')
  await untilRead(stage)
  assert.deepEqual(await statesOf(sending), ['delivered'])
  assert.deepEqual(await told(sending), [])
  assert.deepEqual(await readAll(), before)
})

test('check 47: a report suppresses only for its own organization, and only its own recipient', async () => {
  const to = ['gone@far.test', 'Full@far.test', 'fine@far.test', 'slow@far.test']
  const [sending, other] = [await deliver(stage, to), await deliver(stage, to)]
  const parts = [
    userUnknown('GONE@far.test'),
    { email: 'full@FAR.test', status: '5.2.2', diagnostic: '552 5.2.2 mailbox full' },
    { email: 'slow@far.test', action: 'delayed', status: '4.4.1' },
    userUnknown('stranger@far.test'),
  ]
  for (const address of sending.returnPaths)
    assert.equal(await report(stage, address.toUpperCase(), dsn(parts)), 'accepted')
  await untilRead(stage)
  const submission = await untilStates(
    sending.caller.api,
    sending.accepted.submission.id,
    ...['bounced', 'bounced', 'delivered', 'delivered'],
  )
  assert.equal(submission.status, 'partially_delivered')
  assert.equal(submission.recipients[0]!.response, '550 5.1.1 user unknown')
  assert.deepEqual(
    (await told(sending)).map(({ type, recipient, classification }) => [type, recipient, classification]),
    [
      ['bounced', 'gone@far.test', 'hard_bounce'],
      ['bounced', 'Full@far.test', 'mailbox_full'],
      ['deferred', 'slow@far.test', 'network'],
    ],
  )
  const [suppression, ...others] = await suppressionsOf(sending.caller)
  assert.deepEqual(
    [suppression?.email, suppression?.reason, others.length],
    ['gone@far.test', 'hard_bounce', 0],
  )
  assert.deepEqual(await suppressionsOf(other.caller), [])
  assert.deepEqual(await told(other), [])
  await deliver(stage, ['gone@far.test'], other.caller)
})

test('a report that arrives before its delivery is recorded waits for the record', async (t) => {
  const { db } = stage.node.foundation
  t.after(() => void (sink.rule = () => null))
  sink.rule = async ({ stage: step, from, recipients }) => {
    if (step !== 'message') return null
    assert.equal(await report(stage, from, dsn([userUnknown(recipients[0]!)])), 'accepted')
    await until('the report to be put off', async () => {
      const [row] = await db.query('select from kept_mail where retry_at is not null')
      return row
    })
    return null
  }
  const { api } = await stage.node.createCaller()
  const { submission } = await send(api, await api.createInbox(), ['gone@far.test'])
  await untilStates(api, submission.id, 'delivered')
  stage.node.foundation.clock.advance(3_000)
  await untilStates(api, submission.id, 'bounced')
})

test('each kind of feedback leads to its complaint, event and suppression, or to none', async () => {
  const kinds = ['abuse', 'fraud', 'virus', 'other', 'not-spam', 'opt-out', 'auth-failure', 'constellation']
  const sendings = await Promise.all(kinds.map(() => deliver(stage, ['someone@far.test'])))
  for (const [i, kind] of kinds.entries()) {
    const { returnPath } = sendings[i]!
    // Some come to the return path itself.
    const to = kind === 'fraud' ? returnPath : 'fbl@inbox.test'
    for (const copy of ['first', 'second'])
      assert.equal(await report(stage, to, arf(kind, returnPath, null)), 'accepted', copy)
  }
  await untilRead(stage)
  const seen = await Promise.all(
    sendings.map(async (sending) => [
      (await complaintsOf(sending.caller)).map(({ feedbackType }) => feedbackType).join(' '),
      (await told(sending)).map(({ type }) => type).join(' '),
      (await suppressionsOf(sending.caller)).map(({ reason }) => reason).join(' '),
    ]),
  )
  assert.deepEqual(seen, [
    ['abuse', 'complained', 'complaint'],
    ['fraud', 'complained', 'complaint'],
    ['virus', 'complained', 'complaint'],
    ['other', 'complained', 'complaint'],
    ['not-spam', '', ''],
    ['', '', 'unsubscribe'],
    ['', '', ''],
    ['', '', ''],
  ])
  const { caller, accepted } = sendings[0]!
  const [{ id, createdAt, ...complaint } = {}] = await complaintsOf(caller)
  assert.ok(id && createdAt)
  assert.deepEqual(complaint, {
    email: 'someone@far.test',
    submissionId: accepted.submission.id,
    messageId: accepted.message.id,
    feedbackType: 'abuse',
    userAgent: 'Far/1.0',
    reportedBy: 'mx.far.test',
    arrivedAt: '2005-03-08T18:00:00.000Z',
  })
})

/** The return path of each recipient's copy, in their order. */
function pathsOf({ sink }: Pick<Stage, 'sink'>, { accepted }: Sending, to: string[]): string[] {
  const copies = sink.copiesOf(accepted.message.internetMessageId)
  return to.map((address) => copies.find(({ recipient }) => recipient === address)!.from)
}

/** Sends every bad report about the others to the return path: bounces and complaints that name them. */
async function speakFor(stage: Pick<Stage, 'node'>, others: string[], returnPath: string): Promise<void> {
  const all = { ...stage } as Stage
  assert.equal(await report(all, returnPath, dsn(others.map(userUnknown))), 'accepted')
  for (const other of others) {
    assert.equal(await report(all, returnPath, dsn([userUnknown(other)])), 'accepted')
    for (const to of [returnPath, 'fbl@inbox.test'])
      assert.equal(await report(all, to, arf('abuse', returnPath, other)), 'accepted')
  }
  await untilRead(all)
}

/** Asserts that only the recipient at `own` has changed. */
async function assertSpokeForItself(sending: Sending, to: string[], own: number): Promise<void> {
  const states = await statesOf(sending)
  assert.deepEqual(
    states.filter((_, place) => place !== own),
    to.slice(1).map(() => 'delivered'),
  )
  const only = [to[own]]
  const named = [await suppressionsOf(sending.caller), await complaintsOf(sending.caller)]
  for (const list of named) assert.deepEqual([...new Set(list.map(({ email }) => email))], only)
  assert.deepEqual([...new Set((await told(sending)).map(({ recipient }) => recipient))], only)
}

test('check 48, hostile 6: through one smarthost, a recipient’s report affects that recipient alone', async () => {
  const to = ['customer@victim.test', 'one@evil.test', 'other@evil.test']
  const sending = await deliver(stage, to)
  const untouched = await deliver(stage, to)
  const paths = pathsOf(stage, sending, to)
  assert.equal(new Set(paths).size, 3)
  const copies = stage.sink.copiesOf(sending.accepted.message.internetMessageId)
  // Composed and signed once: all recipients get the same bytes.
  for (const { raw } of copies) assert.ok(raw.equals(copies[0]!.raw))
  await speakFor(stage, [to[0]!, to[2]!], paths[1]!)
  await assertSpokeForItself(sending, to, 1)
  assert.deepEqual(await statesOf(untouched), ['delivered', 'delivered', 'delivered'])
})

// A node of its own: it sends to each domain separately.
test('check 48, hostile 6: across domains and queues, a recipient’s report affects that recipient alone', async (t) => {
  const evil = await startSink(t, { host: '127.0.0.31' })
  const victim = await startSink(t, { host: '127.0.0.32', port: evil.port })
  const dns = await DnsServer.start({
    'evil.test': { A: [evil.host] },
    'victim.test': { A: [victim.host] },
  })
  t.after(() => dns.close())
  const node = await startNode(await makePlace(t), {
    env: {
      POSTHORN_DELIVERY: 'direct',
      POSTHORN_DNS: dns.address,
      POSTHORN_MX_PORT: String(evil.port),
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    },
  })
  const to = ['customer@victim.test', 'one@evil.test', 'other@evil.test']
  const sending = await deliver({ node, sink: evil }, to)
  const [own] = pathsOf({ sink: evil }, sending, [to[1]!])
  await speakFor({ node }, [to[0]!, to[2]!], own!)
  await assertSpokeForItself(sending, to, 1)
})

test('check 48, hostile 6: another tenant’s inbox affects that recipient alone', async () => {
  const { node } = stage
  const [evil, victim] = [await node.createCaller(), await node.createCaller()]
  const inboxes = [await victim.api.createInbox(), await evil.api.createInbox()]
  const to = inboxes.map(({ address }) => address)
  const caller = await node.createCaller()
  const accepted = await send(caller.api, await caller.api.createInbox(), to)
  await untilStates(caller.api, accepted.submission.id, 'delivered', 'delivered')
  const path = `/v1/inboxes/${inboxes[1]!.id}/messages`
  const message = await until('the mail to be filed', async () => {
    const { messages } = await evil.api.want<{ messages: { id: string }[] }>(path)
    return messages[0]
  })
  const source = await evil.api.bytes(`/v1/messages/${message.id}/source`)
  const returnPath = /^Return-Path: <([^>]+)>/im.exec(source.toString('latin1'))![1]!
  const sending = { caller, accepted, returnPath, returnPaths: [returnPath] }
  await speakFor({ node }, [to[0]!], returnPath)
  await assertSpokeForItself(sending, to, 1)
  for (const { api } of [evil, victim]) assert.deepEqual(await suppressionsOf({ api } as TestCaller), [])
})

test('a complaint belongs to the recipient of its return path, whomever it names', async () => {
  const to = ['a@far.test', 'b@far.test']
  const sending = await deliver(stage, to)
  const [, path] = pathsOf(stage, sending, to)
  assert.equal(await report(stage, 'fbl@inbox.test', arf('abuse', path!, null)), 'accepted')
  await untilRead(stage)
  assert.deepEqual(
    (await complaintsOf(sending.caller)).map(({ email }) => email),
    ['b@far.test'],
  )
})

test('bounces in words move the recipient, and delays are announced once', async () => {
  const [gone, slow] = [await deliver(stage, ['gone@far.test']), await deliver(stage, ['slow@far.test'])]
  const qmail =
    'From: MAILER-DAEMON@far.test\nSubject: failure notice\n\nHi. This is the qmail-send program.\n\n' +
    '<forwarded@elsewhere.test>:\nRemote host said: 550 5.1.1 no such user\n\n--- Below this line is a copy of the message.\n\nx\n'
  assert.equal(await report(stage, gone.returnPath, qmail), 'accepted')
  for (const status of ['4.4.1', '4.4.1', '4.2.2', '4.3.0'])
    await report(stage, slow.returnPath, dsn([{ email: 'slow@far.test', action: 'delayed', status }]))
  await untilRead(stage)
  assert.deepEqual(await statesOf(gone), ['bounced'])
  assert.deepEqual(
    (await suppressionsOf(gone.caller)).map(({ email }) => email),
    ['gone@far.test'],
  )
  assert.deepEqual(await statesOf(slow), ['delivered'])
  assert.equal((await told(slow)).length, 1)
})

test('operators’ mail is kept for 30 days, and the newest 1,000 read mails stay', async () => {
  // The first mail of this node: every kept mail belongs to this test.
  const { node } = unread
  const { clock, db } = node.foundation
  const count = async () => (await db.query('select from kept_mail order by received_at, id')).length
  await keep(
    node,
    Array.from({ length: 1_010 }, () => ({ purpose: 'operator' as const, blob: null })),
  )
  assert.equal(await dropOldMail(node.foundation, 30 * 86_400_000, 500), false)
  assert.equal(await count(), 1_010)
  await db.query('update kept_mail set read_at = received_at')
  assert.equal(await dropOldMail(node.foundation, 30 * 86_400_000, 500), false)
  assert.equal(await count(), 1_000)
  clock.advance(31 * dayMs)
  assert.equal(await dropOldMail(node.foundation, 30 * 86_400_000, 500), true)
  assert.equal(await dropOldMail(node.foundation, 30 * 86_400_000, 500), true)
  assert.equal(await dropOldMail(node.foundation, 30 * 86_400_000, 500), false)
  assert.equal(await count(), 0)
  assert.deepEqual(await db.query('select from raw where id is not null'), [])
})

test('check 97: a report that cannot be read delays no other, and is finally set aside', async (t) => {
  const { node } = unread
  const sending = await deliver(unread, ['gone@far.test'])
  const pool = new ParsePool({ threads: 1, timeoutMs: 5_000 })
  t.after(() => pool.close())
  const parsePool = {
    report: async (raw: MailBytes) => {
      if (raw instanceof Uint8Array && Buffer.from('x').equals(raw))
        throw new Error('there is no reading this')
      return await pool.report(raw)
    },
  }
  const { claims } = await joinAsNode(t, node.foundation)
  const deps = { ...node.foundation, parsePool, claims: claims('report') }
  // The first mail exists and cannot be read. The second one's blob folder is missing, so its bytes may still exist.
  const mark = join(unreadPlace.folder, 'blobs', 'database-id')
  renameSync(mark, `${mark}.away`)
  await keep(node, [
    { purpose: 'feedback', blob: null },
    { purpose: 'feedback', blob: newUuid() },
  ])
  assert.equal(await report(unread, sending.returnPath, dsn([userUnknown('gone@far.test')])), 'accepted')
  await readReports(deps, 10)
  assert.deepEqual(await statesOf(sending), ['bounced'])
  for (let failure = 2; failure <= 5; failure++) {
    node.foundation.clock.advance(120_000)
    while (await readReports(deps, 10));
  }
  // A report that was set aside is not read again.
  node.foundation.clock.advance(120_000)
  assert.equal(await readReports(deps, 10), false)
  const rows = await node.foundation.db.query('select purpose, failures from kept_mail order by failures')
  assert.deepEqual(rows, [
    { purpose: 'feedback', failures: 0 },
    { purpose: 'operator', failures: 5 },
  ])
  // With the folder back, a missing file is lost.
  renameSync(`${mark}.away`, mark)
  for (let failure = 1; failure <= 5; failure++) {
    node.foundation.clock.advance(120_000)
    while (await readReports(deps, 10));
  }
  const ends = await node.foundation.db.query('select purpose, failures from kept_mail')
  assert.deepEqual(ends, Array(2).fill({ purpose: 'operator', failures: 5 }))
})

async function keep(
  { foundation: { db, clock } }: TestNode,
  mails: { purpose: 'operator' | 'feedback'; blob: string | null }[],
): Promise<void> {
  const tls = { encrypted: false, protocol: 'none', cipher: 'none' }
  const envelope = {
    from: '',
    recipients: [],
    helo: 'far.test',
    remoteIp: '192.0.2.1',
    tls,
    protocol: 'ESMTP',
    receivedBy: 'mx.test',
  }
  const rows = mails.map(({ purpose, blob }) => ({
    raw: { id: newUuid(), sizeBytes: 1, bytes: blob ? null : Buffer.from('x'), blob },
    receivedAt: clock.now(),
    inboxes: [],
    kept: [
      {
        id: newId('message', clock.nowMs()),
        purpose,
        address: 'abuse@inbox.test',
        network: null,
        envelope,
        submissionId: null,
      },
    ],
    delivery: null,
  }))
  const bound = { mails: 1e6, bytes: 1e9, share: 1 }
  await insertReceived(db.writer, rows, { operator: bound, feedback: bound, return_path: bound }, clock.now())
}

/** RFC 8460. */
const tlsReport = {
  'organization-name': 'Far',
  policies: [{ policy: { 'policy-type': 'sts' }, summary: { 'total-successful-session-count': 1 } }],
}
const rawTlsReport = Buffer.from(
  [
    ...['From: tls@far.test', 'Subject: Report Domain: life.example', 'TLS-Report-Domain: life.example'],
    ...[
      'MIME-Version: 1.0',
      'Content-Type: application/tlsrpt+gzip',
      'Content-Transfer-Encoding: base64',
      '',
    ],
    gzipSync(JSON.stringify(tlsReport)).toString('base64'),
    '',
  ].join('\r\n'),
)

test('a report about TLS is accepted at the record’s address, and at no other address of a domain', async () => {
  const { node } = unread
  await node.foundation.db.query('delete from kept_mail')
  const { api } = await node.createCaller()
  const { records } = await registerDomain(api, 'life.example')
  const { value } = records.find(({ purpose }) => purpose === 'tls_rpt')!
  assert.equal(value, 'v=TLSRPTv1; rua=mailto:tls-reports@mx.posthorn.test')

  const send = async (to: string) => {
    const { outcome, reply } = await sendMail(node.smtp, { from: 'tls@far.test', to, raw: rawTlsReport })
    return `${outcome} ${reply.slice(0, 9)}`
  }
  for (const to of [
    'tls-reports@mx.posthorn.test',
    'TLS-Reports+life@MX.posthorn.test',
    'tlsrpt@mx.posthorn.test',
  ])
    assert.equal(await send(to), 'accepted 250 2.0.0', to)
  for (const to of ['tls-reports@inbox.test', 'tls@mx.posthorn.test', 'tls-reports@bounce.inbox.test'])
    assert.match(await send(to), /^refused 550 5\./, to)
  const kept = await node.foundation.db.query('select purpose, address from kept_mail order by id')
  assert.deepEqual(kept, [
    { purpose: 'operator', address: 'tls-reports@mx.posthorn.test' },
    { purpose: 'operator', address: 'TLS-Reports+life@mx.posthorn.test' },
    { purpose: 'operator', address: 'tlsrpt@mx.posthorn.test' },
  ])
  // They are not mail that needs an operator's answer.
  assert.equal((await checkOperatorMail(node.foundation.db)).detail, 'no unread mail')
  assert.equal(await send('postmaster@mx.posthorn.test'), 'accepted 250 2.0.0')
  assert.equal((await checkOperatorMail(node.foundation.db)).detail, '1 mail to postmaster@ is unread')
})
