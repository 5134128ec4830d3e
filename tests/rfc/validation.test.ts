// Runs validation on the published suites: an address that a suite refuses is never deliverable, whatever DNS says.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { Clock } from '../../src/base/clock.ts'
import { newUuid, type OrganizationId } from '../../src/base/ids.ts'
import { HopsInTime } from '../../src/dns/hops-in-time.ts'
import { HopFinder } from '../../src/dns/mx.ts'
import { Resolver } from '../../src/dns/resolver.ts'
import { Validation, type ValidationResult } from '../../src/flow/validation/validate.ts'
import { parseEmail } from '../../src/mail/address.ts'
import { loadAddressLists } from '../../src/mail/address-lists/address-lists.ts'
import { Db } from '../../src/postgres/db.ts'
import { DnsServer } from '../support/dns-server.ts'
import { readIsEmailCases } from '../support/is-email.ts'
import { testDatabase } from '../support/postgres.ts'

const testdata = resolve(
  import.meta.dirname,
  '../..',
  process.env['POSTHORN_TESTDATA'] ?? '../shared/testdata',
)

/** Returns the text of a suite's file. If it is absent, returns null, or fails in CI. */
function read(name: string): string | null {
  const path = join(testdata, name)
  if (existsSync(path)) return readFileSync(path, 'utf8')
  assert.ok(!process.env['CI'], `${path} is absent`)
  return null
}

const dns = await DnsServer.start()
const db = new Db({ connection: await testDatabase({ after }) })
after(async () => {
  await db.close()
  await dns.close()
})
const none = { added: new Set<string>(), removed: new Set<string>() }
const listChanges = { disposable: none, freeProviders: none, roles: none }
const resolver = new Resolver({ servers: [dns.address], timeoutMs: 5_000 })
const clock = new Clock()
const hopFinder = new HopFinder({ resolver, isAllowed: () => true, deadlineMs: 60_000 })
const validation = new Validation({
  db,
  hopsInTime: new HopsInTime({ hopFinder, clock, minutes: { take: () => null } }),
  listChanges,
})
const caller = { organizationId: newUuid<OrganizationId>(), inboxIds: null }

/** Validates the texts in batches of 100. Every domain has a mail server. */
async function judgeAll(texts: string[]): Promise<ValidationResult[]> {
  const results: ValidationResult[] = []
  for (let start = 0; start < texts.length; start += 100) {
    const some = texts.slice(start, start + 100)
    for (const text of some) {
      const domain = parseEmail(text)?.domain
      if (domain !== undefined) dns.set(domain, { A: ['192.0.2.1'] })
    }
    results.push(...(await validation.validate(caller, some)))
  }
  return results
}

const takesMail = ({ verdict }: ValidationResult) => verdict === 'deliverable' || verdict === 'risky'
const absent = (text: string | null) => (text === null ? 'the suite is absent (POSTHORN_TESTDATA)' : false)

const isEmail = read('address-isemail/tests.xml')

test('check 79: validation judges the is_email suite as published', { skip: absent(isEmail) }, async (t) => {
  const cases = readIsEmailCases(isEmail!)
  const results = await judgeAll(cases.map(({ address }) => address))
  const wrong: string[] = []
  const counts = new Map<string, number>()
  for (const [index, { id, address, category, isMailed }] of cases.entries()) {
    const kind = `${category.replace('ISEMAIL_', '')} ${results[index]!.verdict}`
    counts.set(kind, (counts.get(kind) ?? 0) + 1)
    if (takesMail(results[index]!) !== isMailed) wrong.push(`${id} ${category} ${JSON.stringify(address)}`)
  }
  for (const [kind, count] of [...counts].sort()) t.diagnostic(`${kind}: ${count}`)
  t.diagnostic(`${cases.length - wrong.length} of ${cases.length} addresses judged as the suite does`)
  assert.deepEqual(wrong, [])
})

const blocklist = read('disposable-domains/disposable_email_blocklist.conf')

test('check 79: validation knows the published disposable domains', {
  skip: absent(blocklist),
}, async (t) => {
  const domains = blocklist!.trim().split('\n')
  const lists = await loadAddressLists(listChanges)
  const missed = domains.filter((domain) => !lists.isDisposable(domain))
  // Names under a public suffix belong to others. A few domains of the list are public suffixes.
  const under = domains.filter((domain) => lists.isDisposable(`mail.${domain}`))
  t.diagnostic(
    `${domains.length - missed.length} of ${domains.length} known, ${under.length} with what is under them`,
  )
  assert.deepEqual(missed, [])
  assert.ok(under.length > 0.99 * domains.length)
  const some = domains.filter((_, index) => index % Math.ceil(domains.length / 100) === 0)
  const results = await judgeAll(some.flatMap((domain) => [`ada@${domain}`, `info@${domain}`]))
  assert.deepEqual(
    [...new Set(results.map(({ verdict, reason }) => `${verdict} ${reason}`))],
    ['risky disposable'],
  )
})

const naughty = read('naughty-strings/blns.json')

test('check 79: validation accepts no plain naughty string, and in an address only valid mailboxes', {
  skip: absent(naughty),
}, async (t) => {
  const strings: string[] = JSON.parse(naughty!)
  const forms = {
    alone: (text: string) => text,
    'as a local part': (text: string) => `${text}@good.example`,
    'as a domain': (text: string) => `ada@${text}`,
  }
  for (const [name, form] of Object.entries(forms)) {
    const texts = strings.map(form)
    const results = await judgeAll(texts)
    const taken = results.filter(takesMail)
    t.diagnostic(`${name}: ${taken.length} of ${texts.length} are addresses`)
    for (const { email, normalized, mxHosts } of taken) {
      // A deliverable address is an RFC 5321 mailbox: no controls, no spaces outside quotes, one domain.
      assert.match(
        normalized!,
        /^(?:[^\s\p{Cc}"<>()[\]\\,;:@]+|"(?:[^"\\\p{Cc}]|\\.)*")@[a-z0-9.-]+$/u,
        email,
      )
      assert.equal(mxHosts.length, 1)
    }
    if (name === 'alone') assert.deepEqual(taken, [])
  }
})

const idn: [email: string, normalized: string | null][] = [
  ['用户@例子.广告', '用户@xn--fsqu00a.xn--4rr70v'],
  ['अजय@डाटा.भारत', 'अजय@xn--c2bd1gb.xn--h2brj9c'],
  ['квіточка@пошта.укр', 'квіточка@xn--80a1acn3a.xn--j1amh'],
  ['χρήστης@παράδειγμα.ελ', 'χρήστης@xn--hxajbheg2az3al.xn--qxam'],
  ['Dörte@Sörensen.example', 'Dörte@xn--srensen-90a.example'],
  ['коля@пример.рф', 'коля@xn--e1afmkfd.xn--p1ai'],
  ['a@faß.example', 'a@xn--fa-hia.example'],
  ['a@BÜCHER.example', 'a@xn--bcher-kva.example'],
  ['a@bu\u0308cher.example', 'a@xn--bcher-kva.example'],
  ['a@xn--bcher-kva.example', 'a@xn--bcher-kva.example'],
  ['a@bücher。example', 'a@xn--bcher-kva.example'],
  ['a@\u0301ücher.example', null],
  ['a@bü\u202ecd.example', null],
  ['a@ü..example', null],
  ['a@-ü.example', null],
  ['a@ü_x.example', null],
  ['a@ü x.example', null],
  ['a@אx1א-.example', null],
  ['a@１２７.0.0.1', null],
  [`a@${'ü'.repeat(64)}.example`, null],
  [`${'ü'.repeat(33)}@x.example`, null],
]

test('check 79: internationalized addresses are normalized and judged', async (t) => {
  const results = await judgeAll(idn.map(([email]) => email))
  assert.deepEqual(
    results.map(({ email, normalized }) => [email, normalized]),
    idn,
  )
  for (const result of results) assert.equal(takesMail(result), result.normalized !== null)
  t.diagnostic(
    `${results.filter(takesMail).length} taken, ${results.filter((one) => !takesMail(one)).length} refused`,
  )
})
