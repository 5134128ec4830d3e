// Daily reports about DMARC and TLS: bounded, sent once after their day, to addresses that agree. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, beforeEach, type TestContext, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { checkDmarcReports } from '../../src/cli/doctor/daily-reports.ts'
import { Resolver } from '../../src/dns/resolver.ts'
import { SharedResolver } from '../../src/dns/shared-resolver.ts'
import { dueDmarcReports } from '../../src/flow/dmarc/send-reports.ts'
import { ParsePool } from '../../src/mail/parse-pool.ts'
import { parseMail } from '../../src/mail/read/parse.ts'
import { type DmarcNote, dmarcNoteOf } from '../../src/mailauth/dmarc/dmarc-note.ts'
import { evaluateDmarc } from '../../src/mailauth/dmarc/evaluate.ts'
import type { SessionResult } from '../../src/mailauth/tls-report/report.ts'
import { dmarcReportLoop, startDmarcNotes } from '../../src/roles/dmarc-reports.ts'
import type { Part } from '../../src/roles/part.ts'
import { startTlsReports } from '../../src/roles/tls-reports.ts'
import { noteDmarc } from '../../src/store/domains/dmarc-reports.ts'
import { noteTls } from '../../src/store/domains/tls-reports.ts'
import type { Api } from '../support/api.ts'
import { trustAuthority } from '../support/certificates.ts'
import { zoneLookup } from '../support/dmarc-zone.ts'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { assertTlsReport } from '../support/tls-report-schema.ts'
import { inReverse, until } from '../support/until.ts'

const hourMs = 3_600_000
const from = 'reporting@inbox.test'
const trusted = '192.0.2.99'
/** The limits of the organization that sends the reports. */
const tightest = { messagesPerMinute: 1, messagesPerDay: 1, recipientsPerDay: 1 }

const place = await makePlace({ after })
const sink = await startSink(place)
const dns = await DnsServer.start({ '_dmarc.shop.test': { TXT: ['v=DMARC1; p=reject'] } })
place.after(() => dns.close())
const env = {
  POSTHORN_DELIVERY: 'relay',
  POSTHORN_RELAY_URL: sink.url,
  POSTHORN_MAIL_HOST: 'mx.here.test',
  POSTHORN_DMARC_REPORTS: from,
  POSTHORN_DNS: dns.address,
}
const node = await startNode(place, { env, roles: ['api', 'delivery'] })
const { clock, db } = node.foundation

const parsePool = new ParsePool({ threads: 1, timeoutMs: 1_000 })
// An unanswered question would delay a report by an hour of the test's clock.
const asking = new Resolver({ servers: [dns.address], timeoutMs: 5_000, tries: 1 })
const foundation = { ...node.foundation, resolver: new SharedResolver({ resolver: asking }) }
const signals = { announced: () => {} }
const reports = dmarcReportLoop(foundation, { parsePool, signals })
reports.start()
const { settings } = node.foundation
// The receivers of reports by POST are on this machine.
const reporting = { ...settings, tlsReports: from, allowPrivateNetworks: true }
const tlsReports = startTlsReports({ ...foundation, settings: reporting }, { parsePool, signals })
place.after(async () => {
  await reports.stop()
  await tlsReports.stop()
  await parsePool.close()
})

// Reports belong to the whole deployment, so each test begins without any.
beforeEach(async () => {
  await db.query('delete from dmarc_report')
  await db.query('delete from tls_report')
  sink.copies.splice(0)
})

/** Counts mails as a mail server does that stops right afterwards. */
async function note(...notes: DmarcNote[]): Promise<void> {
  const parts: Part[] = []
  const take = startDmarcNotes(node.foundation, (address) => address === trusted, parts)
  for (const one of notes) take(one)
  for (const part of parts) await part.stop()
}

let opening: Promise<Api> | null = null

/** Opens, once, the inbox that sends the reports. */
function openInbox(): Promise<Api> {
  opening ??= (async () => {
    const { api } = await node.createCaller({ limits: tightest })
    await api.want('/v1/inboxes', {
      method: 'POST',
      status: 201,
      idempotencyKey: 'reporting',
      body: { localPart: 'reporting', displayName: 'Reports' },
    })
    return api
  })()
  return opening
}

/** The note that a mail server makes of a mail that passed, or failed, at shop.test. */
async function noteOf(
  passing: string | null,
  rua = 'mailto:d@shop.test',
  sourceIp = '192.0.2.1',
): Promise<DmarcNote> {
  const dkim = passing === null ? [] : [{ domain: passing, selector: 's', result: 'pass' as const }]
  const verdict = await evaluateDmarc(
    zoneLookup({ dmarc: { 'shop.test': `v=DMARC1; p=reject; rua=${rua}` } }),
    { from: { domains: ['shop.test'], fault: null }, spf: null, dkim },
  )
  const evaluated = { verdict, sourceIp, envelopeFrom: 'shop.test', spf: null, dkim }
  return dmarcNoteOf({ ...evaluated, applied: verdict.disposition })!
}

const readRows = () =>
  db.query<{ kinds: number; omitted: number; failures: number; amounts: number[] }>(
    `select kinds, omitted, failures, array(select e.amount from dmarc_evaluation e
      where e.day = r.day and e.policy_domain = r.policy_domain order by 1)::integer[] as amounts
    from dmarc_report r order by policy_domain`,
  )

async function untilGone(): Promise<void> {
  await until('the reports to be done', async () => {
    reports.wake()
    return (await readRows()).length === 0
  })
}

// Runs first, because the inbox does not exist yet.
test('a report waits while DNS or its inbox is missing, and is dropped once it is useless', async () => {
  const waits = (failures: number) =>
    until(`the report to have waited ${failures} times`, async () => {
      reports.wake()
      return (await readRows())[0]?.failures === failures
    })
  dns.fail('shop.test._report._dmarc.slow-reader.test', 'SERVFAIL')
  await note(await noteOf('shop.test', 'mailto:d@slow-reader.test'))
  clock.advance(27 * hourMs)
  await waits(1)
  dns.fail('shop.test._report._dmarc.slow-reader.test', null)
  dns.set('shop.test._report._dmarc.slow-reader.test', { TXT: ['v=DMARC1'] })
  clock.advance(1.1 * hourMs)
  await waits(2)
  assert.match(node.log(), /DMARC report deferred/)
  assert.deepEqual(
    (await checkDmarcReports(node.foundation)).map(({ status }) => status),
    ['warning'],
  )
  // Before the report is due again: a run that a wake-up began earlier would find no inbox, and wait another hour.
  await openInbox()
  clock.advance(1.1 * hourMs)
  await untilGone()
  assert.deepEqual(
    (await checkDmarcReports(node.foundation)).map(({ status }) => status),
    ['ok'],
  )
  await until('the report to arrive', () => sink.copies.length > 0)
  await note(await noteOf('shop.test', 'mailto:d@elsewhere.test'))
  await db.query(`update dmarc_report set due_at = 'infinity'`)
  clock.advance(100 * hourMs)
  await untilGone()
  assert.equal(sink.copies.length, 1)
})

test('a report is sent once, after its day, through the inbox that the operator named', async () => {
  await openInbox()
  const [passed, failed] = [await noteOf('shop.test'), await noteOf(null)]
  await note(passed, passed, failed)
  await note(passed)
  assert.deepEqual(await readRows(), [{ kinds: 2, omitted: 0, failures: 0, amounts: [1, 3] }])
  reports.wake()
  const day = clock.now().toISOString().slice(0, 10)
  clock.advance(27 * hourMs)
  await untilGone()
  const copy = await until('the report to arrive', () => sink.copies[0])
  assert.equal(copy.recipient, 'd@shop.test')
  const mail = parseMail(copy.raw)
  assert.equal(mail.from?.email, from)
  assert.match(mail.subject, /^Report Domain: shop\.test Submitter: mx\.here\.test Report-ID: </)
  assert.match(copy.raw.toString('latin1'), /\r\nDKIM-Signature: [^\0]*?d=inbox\.test/)
  const [attached] = mail.attachments
  assert.equal(attached!.contentType, 'application/gzip')
  assert.match(attached!.filename, /^mx\.here\.test!shop\.test!\d+!\d+\.xml\.gz$/)
  const { start, length } = attached!.span
  const xml = gunzipSync(Buffer.from(copy.raw.toString('latin1', start, start + length), 'base64')).toString()
  assert.match(xml, new RegExp(`<report_id>${day}\\.`))
  assert.deepEqual(
    [...xml.matchAll(/<count>(\d+)</g)].map(([, count]) => count),
    ['3', '1'],
  )
  assert.deepEqual(
    [...xml.matchAll(/<disposition>(\w+)</g)].map(([, disposition]) => disposition),
    ['pass', 'reject'],
  )
})

test('a report that a node sent before it died is not sent again', async () => {
  await openInbox()
  await note(await noteOf('shop.test'))
  clock.advance(27 * hourMs)
  const startedAt = clock.now()
  const log = node.log().length
  // This node claims the report, sends it, and is lost before it deletes the row.
  await db.query('create rule kept as on delete to dmarc_report do instead nothing')
  reports.wake()
  await until('the report to arrive', () => sink.copies.length === 1)
  await until('the report to have been done', () => node.log().includes('DMARC report sent', log))
  await db.query('drop rule kept on dmarc_report')
  clock.advance(hourMs)
  await untilGone()
  const submissions = await db.query('select from submission where created_at >= $1', [startedAt])
  assert.equal(submissions.length, 1)
  assert.equal(sink.copies.length, 1)
})

test('a foreign report address gets reports only if DNS agrees', async () => {
  await openInbox()
  dns.set('shop.test._report._dmarc.reader.test', { TXT: ['v=DMARC1; rua=mailto:other@reader.test'] })
  await note(await noteOf('shop.test', 'mailto:d@reader.test,mailto:d@victim.test'))
  clock.advance(27 * hourMs)
  await untilGone()
  await until('the report to arrive', () => sink.copies.length > 0)
  assert.deepEqual(
    sink.copies.map(({ recipient }) => recipient),
    ['other@reader.test'],
  )
})

const noShares = { maxReportsOfNetwork: 1, maxReportsOfDomain: 1, maxKindsOfNetwork: 1 }

test('strangers cannot exceed the stored bounds of a day and a report, and dropped mail is counted', async () => {
  // With notes of today, no report is sent or expires during the test.
  const day = clock.now().toISOString().slice(0, 10)
  const later = new Date(clock.nowMs() + hourMs)
  const bounds = { ...noShares, maxReports: 3, maxKinds: 5, maxKindsOfReport: 2 }
  const kindsOf = (policyDomain: string, ...names: string[]) =>
    names.map((name) => ({
      day,
      policyDomain,
      policy: { p: 'none' },
      mail: { name },
      amount: 2,
      registeredDomain: policyDomain,
      network: null,
      dueAt: later,
    }))
  await noteDmarc(db.writer, kindsOf('a.test', 'one', 'two', 'three', 'four'), bounds)
  await noteDmarc(
    db.writer,
    [...kindsOf('a.test', 'one', 'five'), ...kindsOf('b.test', 'one', 'two')],
    bounds,
  )
  await noteDmarc(db.writer, [...kindsOf('c.test', 'one', 'two'), ...kindsOf('d.test', 'one')], bounds)
  const rows = await readRows()
  assert.deepEqual(rows, [
    { kinds: 2, omitted: 6, failures: 0, amounts: [2, 4] },
    { kinds: 2, omitted: 0, failures: 0, amounts: [2, 2] },
    { kinds: 1, omitted: 2, failures: 0, amounts: [2] },
  ])
})

test('2,000 domains of one network, or below one name, leave room for other reports', async () => {
  const noted = await noteOf('shop.test')
  const noteFrom = (policyDomain: string, sourceIp: string): DmarcNote => ({
    ...noted,
    policyDomain,
    mail: { ...noted.mail, headerFrom: policyDomain, sourceIp },
  })
  const domains = Array.from({ length: 2_000 }, (_, i) => i)
  await note(...domains.map((i) => noteFrom(`evil${i}.test`, `198.51.100.${i % 256}`)))
  await note(...domains.map((i) => noteFrom(`n${i}.evil.test`, `2001:db8:${i.toString(16)}::1`)))
  await note(...domains.map((i) => noteFrom(`relayed${i}.test`, trusted)))
  await note(noteFrom('evil1999.test', '203.0.113.1'), noteFrom('evil.test', '198.51.100.1'))
  await note(noteFrom('shop.test', '203.0.113.1'))
  const counts = await db.query<{ kind: string; reports: number }>(
    `select regexp_replace(policy_domain, '[0-9]+', '') as kind, count(*)::integer as reports
    from dmarc_report group by 1 order by 1`,
  )
  assert.deepEqual(
    counts.map(({ kind, reports }) => [kind, reports]),
    [
      ['evil.test', 501],
      ['n.evil.test', 20],
      ['relayed.test', 2_000],
      ['shop.test', 1],
    ],
  )
})

test('one network’s kinds of mail leave room for those of other networks', async () => {
  // With notes of today, no report is sent or expires during the test.
  const day = clock.now().toISOString().slice(0, 10)
  const later = new Date(clock.nowMs() + hourMs)
  const bounds = { ...noShares, maxReports: 9, maxReportsOfNetwork: 9, maxKinds: 9, maxKindsOfReport: 9 }
  const kindsOf = (policyDomain: string, network: string, names: string[]) =>
    names.map((name) => ({
      day,
      policyDomain,
      policy: { p: 'none' },
      mail: { name },
      amount: 1,
      registeredDomain: policyDomain,
      network,
      dueAt: later,
    }))
  const store = (policyDomain: string, network: string, ...names: string[]) =>
    noteDmarc(db.writer, kindsOf(policyDomain, network, names), { ...bounds, maxKindsOfNetwork: 3 })
  await store('a.test', 'one', 'x', 'y')
  await store('b.test', 'one', 'x', 'y')
  await store('c.test', 'two', 'x', 'y')
  assert.deepEqual(
    (await readRows()).map(({ kinds, omitted }) => [kinds, omitted]),
    [
      [2, 0],
      [1, 1],
      [2, 0],
    ],
  )
})

test('reports use none of the volume of their inbox’s organization', async () => {
  const api = await openInbox()
  const noted = await noteOf('shop.test')
  await note(
    ...['one.test', 'two.test'].map((policyDomain) => ({
      ...noted,
      policyDomain,
      policy: ruaOf(noted, policyDomain),
    })),
  )
  clock.advance(27 * hourMs)
  await untilGone()
  await until('both reports to arrive', () => sink.copies.length === 2)
  const inbox = await api.createInbox('own')
  const { submission } = await send(api, inbox, ['someone@far.test'])
  await untilStates(api, submission.id, 'delivered')
})

/** The note's policy, as published by a domain that receives its own reports. */
function ruaOf({ policy }: DmarcNote, domain: string): DmarcNote['policy'] {
  return { ...policy, rua: [`mailto:d@${domain}`] }
}

test('several nodes’ counts add up, and one node claims a report', async () => {
  const noted = await noteOf('shop.test')
  await Promise.all(Array.from({ length: 8 }, () => note(noted, noted)))
  assert.deepEqual(await readRows(), [{ kinds: 1, omitted: 0, failures: 0, amounts: [16] }])
  const at = new Date(clock.nowMs() + 27 * hourMs)
  const until = new Date(at.getTime() + hourMs)
  const claims = await Promise.all(
    Array.from({ length: 4 }, () => dueDmarcReports.claim(db.writer, at, until)),
  )
  assert.equal(claims.filter((claim) => claim !== null).length, 1)
})

test('mail gets no note if its domain wants no reports, or if DMARC reached no conclusion', async () => {
  const rows: [record: string, isNoted: boolean][] = [
    ['v=DMARC1; p=none', false],
    ['v=DMARC1; p=none; rua=https://shop.test/', false],
    ['temporary', false],
    ['v=DMARC1; p=none; rua=mailto:d@shop.test', true],
  ]
  for (const [record, isNoted] of rows) {
    const lookup = zoneLookup({ dmarc: { 'shop.test': record } })
    const facts = { from: { domains: ['shop.test'], fault: null }, spf: null, dkim: [] }
    const verdict = await evaluateDmarc(lookup, facts)
    const mail = { sourceIp: '192.0.2.1', envelopeFrom: '', spf: null, dkim: [], applied: 'none' as const }
    assert.equal(dmarcNoteOf({ verdict, ...mail }) !== null, isNoted, record)
  }
})

const stsPolicy: SessionResult['policy'] = {
  type: 'sts',
  domain: 'shop.test',
  lines: ['version: STSv1', 'mode: enforce', 'mx: *.shop.test', 'max_age: 604800'],
  mx: ['*.shop.test'],
}
const noPolicy: SessionResult['policy'] = { type: 'no-policy-found', domain: 'shop.test', lines: [], mx: [] }
const expired: SessionResult['failure'] = {
  type: 'certificate-expired',
  sendingIp: '192.0.2.1',
  host: 'mx.shop.test',
  ip: '2001:db8::25',
  reason: 'MTA-STS policy (enforce): its certificate has expired',
}

/** Counts sessions with shop.test of today, of which a report is due at once. */
async function noteSessions(...kinds: [SessionResult, number][]): Promise<void> {
  const day = clock.now().toISOString().slice(0, 10)
  const key = { day, policyDomain: 'shop.test', registeredDomain: 'shop.test', dueAt: clock.now() }
  const bounds = { maxReports: 9, maxReportsOfDomain: 9, maxKinds: 9, maxKindsOfReport: 9 }
  await noteTls(
    db.writer,
    kinds.map(([result, amount]) => ({ ...key, result, amount })),
    bounds,
  )
}

async function untilTlsDone(): Promise<void> {
  await until('the TLS reports to be done', async () => {
    tlsReports.wake()
    return (await db.query('select from tls_report')).length === 0
  })
}

/** Reads the mail with another program. */
function readTlsMail(raw: Buffer): unknown {
  const reader = `${import.meta.dirname}/../support/tls-report-reader.py`
  const { status, stdout, stderr } = spawnSync('python3', [reader], { input: raw })
  assert.equal(status, 0, stderr.toString())
  return JSON.parse(stdout.toString())
}

test('a TLS report goes by mail as RFC 8460 has it, and a second reader finds the same counts', async () => {
  await openInbox()
  dns.set('_smtp._tls.shop.test', { TXT: ['v=TLSRPTv1; rua=mailto:tls@shop.test'] })
  const plain = {
    ...expired,
    type: 'starttls-not-supported',
    sendingIp: null,
    ip: null,
    reason: null,
  } as const
  await noteSessions(
    [{ policy: stsPolicy, failure: null }, 7],
    [{ policy: stsPolicy, failure: expired }, 2],
    [{ policy: noPolicy, failure: plain }, 1],
  )
  await untilTlsDone()
  const copy = await until('the report to arrive', () => sink.copies[0])
  assert.equal(copy.recipient, 'tls@shop.test')
  const raw = copy.raw.toString('latin1')
  assert.match(raw, /\r\nDKIM-Signature: [^\0]*?d=inbox\.test/)
  // The servers on the way need no TLS to deliver it.
  assert.match(raw, /\r\nTLS-Required: No\r\n/)
  const { attachments } = parseMail(copy.raw)
  const { start, length } = attachments[0]!.span
  const json = JSON.parse(gunzipSync(Buffer.from(raw.slice(start, start + length), 'base64')).toString())
  assertTlsReport(json)
  const none = { type: 'no-policy-found', domain: 'shop.test', lines: [] }
  assert.deepEqual(readTlsMail(copy.raw), {
    contact: from,
    policies: [
      {
        type: 'sts',
        domain: 'shop.test',
        lines: stsPolicy.lines,
        successes: 7,
        failures: [['certificate-expired', 2]],
      },
      { ...none, successes: 0, failures: [['starttls-not-supported', 1]] },
    ],
  })
})

/** Receives reports by POST. */
async function startReceiver(t: TestContext) {
  const scope = inReverse(t)
  const calls: { headers: IncomingHttpHeaders; body: Buffer }[] = []
  const receiver = { url: '', calls, status: 201 }
  const server = createServer(trustAuthority(scope).issue('reports.shop.test'), async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    calls.push({ headers: request.headers, body: Buffer.concat(chunks) })
    response.writeHead(receiver.status).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  scope.after(() => void server.close())
  dns.set('reports.shop.test', { A: ['127.0.0.1'] })
  receiver.url = `https://reports.shop.test:${(server.address() as AddressInfo).port}/tls?d=1`
  return receiver
}

test('a TLS report goes by POST, again after an hour if the receiver fails, and to another destination meanwhile', async (t) => {
  await openInbox()
  const receiver = await startReceiver(t)
  dns.set('_smtp._tls.shop.test', { TXT: [`v=TLSRPTv1; rua=${receiver.url}`] })
  receiver.status = 503
  await noteSessions([{ policy: stsPolicy, failure: null }, 3])
  const failures = () => db.query<{ failures: number }>('select failures from tls_report')
  await until('the receiver to be asked in vain', async () => {
    tlsReports.wake()
    return (await failures())[0]?.failures === 1
  })
  receiver.status = 201
  clock.advance(1.1 * hourMs)
  await untilTlsDone()
  assert.equal(receiver.calls.length, 2)
  const { headers, body } = receiver.calls[1]!
  assert.equal(headers['content-type'], 'application/tlsrpt+gzip')
  assertTlsReport(JSON.parse(gunzipSync(body).toString()))
  // One destination that takes the report is enough.
  receiver.status = 503
  dns.set('_smtp._tls.shop.test', { TXT: [`v=TLSRPTv1; rua=${receiver.url},mailto:other@shop.test`] })
  await noteSessions([{ policy: noPolicy, failure: null }, 1])
  await untilTlsDone()
  await until('the report to arrive', () => sink.copies.length === 1)
})

test('a TLS report waits while DNS does not answer, and is dropped if the domain wants none', async () => {
  dns.fail('_smtp._tls.shop.test', 'SERVFAIL')
  await noteSessions([{ policy: stsPolicy, failure: null }, 3])
  await until('the report to wait', async () => {
    tlsReports.wake()
    const [row] = await db.query<{ failures: number }>('select failures from tls_report')
    return row?.failures === 1
  })
  dns.fail('_smtp._tls.shop.test', null)
  dns.set('_smtp._tls.shop.test', { TXT: ['v=spf1 -all'] })
  clock.advance(1.1 * hourMs)
  await untilTlsDone()
  assert.equal(sink.copies.length, 0)
})
