// Compares sender checks: generated mails go over SMTP to us and to others, and one table has the verdicts of all.
import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import type { Message } from '../support/api.ts'
import { authResultsOf } from '../support/auth-results.ts'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, startNode, type TestCaller, type TestNode } from '../support/node.ts'
import { eachOf, sendProxied } from '../support/proxied-mail.ts'
import { writeCases } from '../support/sender-cases/all-cases.ts'
import type { CaseBook, SenderCase } from '../support/sender-cases/case-book.ts'
import { trustedSealer } from '../support/sender-cases/lists.ts'
import {
  askMailauth,
  askPerl,
  askPython,
  type Said,
  scriptsMissing,
  signatureCount,
} from '../support/sender-judges.ts'
import { until } from '../support/until.ts'
import { type Comparison, type Difference, findDifferences, verdictTable } from '../support/verdict-table.ts'
import { miltersMissing } from './milters.ts'
import { postfixMissing } from './postfix.ts'
import { askMilters } from './postfix-verdicts.ts'

const missing = postfixMissing() ?? miltersMissing() ?? scriptsMissing()
// An address for this run only, because the milters' resolvers know only port 53.
const dnsHost = `127.54.${(process.pid >> 8) & 255}.${1 + (process.pid % 254)}`
const mailHost = 'mx.inbox.test'

before(() => {
  if (missing && process.env['CI'] && process.getuid?.() === 0)
    assert.fail(`in CI nothing is skipped: ${missing}`)
  if (missing) console.log(`SKIPPED: who sent a mail is not compared with other verifiers: ${missing}`)
})

/** Our verdicts on a mail when everything is accepted, and our reply to it when forgeries are refused. */
interface Ours extends Said {
  authentication: { spf: string; dkim: string; dmarc: string }
  reply: string
}

type Judges = Record<'opendkim' | 'opendmarc' | 'dkimpy' | 'pyspf' | 'Mail::DKIM' | 'mailauth', Said[]>

const ignoresLength =
  'RFC 6376 8.2: "Signers should be extremely wary of using this tag, and Assessors might wish to ignore signatures that use the tag."'
const avoidsQuotes =
  'RFC 5321 4.1.2: "a host that expects to receive mail SHOULD avoid defining mailboxes where the Local-part requires (or uses) the Quoted-string form"; a reader who misses the quotes sees the other domain.'

const seesOther =
  'RFC 6376 8.15: "It is up to the Identity Assessor or some other subsequent agent to act on such messages as needed, such as degrading the trust of the message (or, indeed, of the Signer), warning the recipient, or even refusing delivery."'
const secondSubject = 'a second Subject above, which h= does not cover'
const waitsForDns =
  'RFC 9989 5.3.6: "If one or more DNS queries required to perform DMARC validation on the message do not complete due to temporary or permanent DNS errors, the message cannot be considered to pass or fail the DMARC mechanism check."'

/**
 * Cases in which all others with a verdict agree, and we differ on purpose. The test also fails if such a difference is
 * gone.
 */
const exceptions: (Difference & { because: string })[] = [
  ...[
    { method: 'DKIM', subject: 'l= and more behind', ours: 'not pass', theirs: 'pass' },
    { method: 'DMARC', subject: 'l= and more behind', ours: 'fail', theirs: 'pass' },
    { method: 'refused', subject: 'l= and more behind', ours: 'refused', theirs: 'taken' },
    // Mail::DKIM does not verify this signature.
    { method: 'DMARC', subject: 'l=0', ours: 'fail', theirs: 'pass' },
    { method: 'refused', subject: 'l=0', ours: 'refused', theirs: 'taken' },
  ].map((one) => ({ ...one, because: ignoresLength })),
  ...[
    { method: 'DKIM', subject: secondSubject, ours: 'not pass', theirs: 'pass' },
    { method: 'DMARC', subject: secondSubject, ours: 'fail', theirs: 'pass' },
    { method: 'refused', subject: secondSubject, ours: 'refused', theirs: 'taken' },
  ].map((one) => ({ ...one, because: seesOther })),
  ...[
    { method: 'DMARC', subject: 'DNS does not answer for the key', ours: 'temperror', theirs: 'fail' },
    { method: 'refused', subject: 'DNS does not answer for the key', ours: 'taken', theirs: 'refused' },
    {
      method: 'DMARC',
      subject: 'SPF: DNS does not answer for the record',
      ours: 'temperror',
      theirs: 'fail',
    },
    {
      method: 'DMARC',
      subject: 'SPF: DNS does not answer for an include',
      ours: 'temperror',
      theirs: 'fail',
    },
  ].map((one) => ({ ...one, because: waitsForDns })),
  ...[
    { method: 'DMARC', ours: 'fail', theirs: 'pass' },
    { method: 'DMARC policy', ours: 'none', theirs: 'reject' },
  ].map((one) => ({ ...one, subject: 'DMARC: a quoted local part; signed', because: avoidsQuotes })),
]

test('check 53, 54, 55: generated mails get the verdicts on which other programs agree', {
  skip: missing ?? false,
  timeout: 120_000,
}, async (t) => {
  const book = writeCases()
  assert.ok(book.cases.length >= 200)
  const dns = await DnsServer.start(book.zone.records, { host: dnsHost, port: 53 })
  t.after(() => dns.close())
  for (const name of book.zone.failing) dns.fail(name, 'SERVFAIL')
  const ours = await askOurselves(t, dns, book)
  const judges = await askOthers(t, book)
  const comparisons = book.cases.flatMap((one, index) => compare(one, index, ours[index]!, judges))
  for (const [index, one] of book.cases.entries()) assertAtOne(one, ours[index]!)
  t.diagnostic(`${book.cases.length} mails`)
  for (const line of verdictTable(comparisons)) t.diagnostic(line)
  const found = findDifferences(comparisons)
  for (const { method, subject, ours: we, theirs } of found)
    t.diagnostic(`${method}: ${subject}: ${we}, others ${theirs}`)
  const meant = exceptions.map(({ because, ...difference }) => difference)
  assert.deepEqual(found, meant)
})

/** Asserts that the API, the source and the reply agree on one mail. */
function assertAtOne(
  { name, isVouchedFor }: SenderCase,
  { authentication, spf, dkim, dmarc, policy, reply }: Ours,
) {
  assert.deepEqual([authentication.spf, authentication.dmarc], [spf, dmarc], name)
  assert.equal(authentication.dkim === 'pass', dkim!.includes('pass'), name)
  const isForged = dmarc === 'fail' && policy === 'reject' && !isVouchedFor
  assert.equal(refusedBy(reply), isForged ? 'refused' : 'taken', `${name}: ${reply}`)
}

async function askOthers(t: TestContext, { cases, zone }: CaseBook): Promise<Judges> {
  const milters = await askMilters(t, dnsHost, cases)
  const [mailauth, python, perl] = await Promise.all(
    [askMailauth, askPython, askPerl].map((ask) => ask(cases, zone)),
  )
  return {
    ...milters,
    'Mail::DKIM': perl!,
    mailauth: mailauth!,
    dkimpy: withoutSpf(python!),
    pyspf: spfOf(python!),
  }
}

const withoutSpf = (said: Said[]) => said.map(({ spf, ...others }): Said => others)
const spfOf = (said: Said[]) => said.map(({ spf }): Said => ({ ...(spf && { spf }) }))

/** Runs two nodes: one accepts everything and reports its findings, the other refuses. */
async function askOurselves(t: TestContext, dns: DnsServer, { cases }: CaseBook): Promise<Ours[]> {
  const place = await makePlace(t)
  const env = {
    POSTHORN_DELIVERY: 'capture',
    POSTHORN_DNS: dns.address,
    POSTHORN_MAIL_HOST: mailHost,
    POSTHORN_ARC_TRUSTED: trustedSealer,
  }
  const reporting = await startNode(place, { env: { ...env, POSTHORN_DMARC: 'report' } })
  const refusing = await startNode(place, { env, roles: ['mx'] })
  const caller = await reporting.createCaller()
  const inbox = await caller.api.createInbox('all')
  const { address } = await caller.api.createInbox('taken')
  const taken = await deliverAll(reporting, inbox.address, cases)
  assert.deepEqual([...new Set(taken.map((reply) => reply.slice(0, 9)))], ['250 2.0.0'])
  const replies = await deliverAll(refusing, address, cases)
  const said = await readVerdicts(caller, inbox.id, cases)
  return said.map((one, index) => ({ ...one, reply: replies[index]! }))
}

function deliverAll({ smtp }: TestNode, to: string, cases: readonly SenderCase[]): Promise<string[]> {
  return eachOf(cases, 8, (one) => sendProxied(smtp, { ...one, to: [to] }))
}

async function readVerdicts(
  { api }: TestCaller,
  inboxId: string,
  cases: readonly SenderCase[],
): Promise<Omit<Ours, 'reply'>[]> {
  type Judged = Message & { inboundSecurity: Pick<Ours, 'authentication'> }
  const messages = await until('all to be filed', async () => {
    const found = await api.exported(inboxId)
    return found.length === cases.length ? (found as Judged[]) : null
  })
  const byMessageId = new Map(messages.map((message) => [message.internetMessageId, message]))
  return await eachOf(cases, 8, async ({ messageId }) => {
    const { id, inboundSecurity } = byMessageId.get(messageId.slice(1, -1)) ?? byMessageId.get(messageId)!
    const source = (await api.bytes(`/v1/messages/${id}/source`)).toString('latin1')
    return { authentication: inboundSecurity.authentication, ...readSource(source) }
  })
}

function readSource(source: string): Said {
  const results = authResultsOf(source, mailHost)
  const of = (wanted: string) => results.filter(({ method }) => method === wanted)
  const [spf, arc, dmarc] = ['spf', 'arc', 'dmarc'].map((method) => of(method)[0])
  const policy = dmarc?.properties['policy.dmarc']
  return {
    // A mail without seals needs no arc result.
    spf: spf!.result,
    arc: arc?.result ?? 'none',
    dmarc: dmarc!.result,
    ...(policy && { policy }),
    dkim: of('dkim').map(({ result }) => result),
  }
}

function compare(one: SenderCase, index: number, ours: Ours, judges: Judges): Comparison[] {
  const said = (pick: (said: Said) => string | null | undefined) =>
    Object.fromEntries(
      Object.entries(judges).map(([name, all]) => [name, pick(all[index]!) ?? undefined] as const),
    )
  const add = (method: string, pick: (said: Said) => string | null | undefined): Comparison => ({
    method,
    subject: one.name,
    ours: pick(ours) ?? undefined,
    others: said(pick),
  })
  const refusal = { ...add('refused', refusalOf), ours: refusedBy(ours.reply) }
  const count = signatureCount(one.raw)
  return [
    add('SPF', ({ spf }) => spf),
    add('SPF, pass or not', ({ spf, spfPasses }) => spfPasses ?? (spf && passOrNot(spf))),
    ...Array.from({ length: count }, (_, at) =>
      add('DKIM', ({ dkim }) => (dkim?.length === count ? signatureWord(dkim[at]) : undefined)),
    ),
    add('ARC', ({ arc }) => (arc === 'crash' ? undefined : arc)),
    add('DMARC', ({ dmarc }) => dmarc),
    ...(ours.policy ? [add('DMARC policy', policyOf)] : []),
    ...(one.isVouchedFor ? [] : [refusal]),
  ]
}

/** Verifiers need not report the policy for mail that neither passes nor fails. */
const policyOf = ({ dmarc, policy }: Said) => (dmarc === 'pass' || dmarc === 'fail' ? policy : undefined)

const passOrNot = (word: string) => (word === 'pass' ? word : 'not pass')

/**
 * RFC 6376 leaves open which word describes a signature that does not verify. A DNS failure remains a separate result.
 */
function signatureWord(word: string | null | undefined): string | undefined {
  if (word === null || word === undefined || word === 'crash') return undefined
  return word === 'temperror' ? word : passOrNot(word)
}

function refusalOf({ dmarc, policy }: Said): string | undefined {
  return dmarc && (dmarc === 'fail' && policy === 'reject' ? 'refused' : 'taken')
}

function refusedBy(reply: string): string {
  if (reply.startsWith('550 5.7.26 ')) return 'refused'
  return reply.startsWith('250 ') ? 'taken' : reply
}
