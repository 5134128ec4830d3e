// Finds the domain of a From field, despite every trick that shows another domain to some reader.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseAddressList } from '../../mail/read/address-list.ts'
import { scanHeader } from '../../mail/read/header-scan.ts'
import { parseMail } from '../../mail/read/parse.ts'
import { readAuthorDomains } from './author-domain.ts'
import { toDnsName } from './dns-name.ts'

const header = (text: string | Buffer) =>
  Buffer.concat([Buffer.from(text), Buffer.from('\r\nTo: b@c.example\r\n\r\nFrom: body@x.example\r\n')])

const sound: [field: string, domain: string][] = [
  ['From: ceo@bank.example', 'bank.example'],
  ['from : CEO@Bank.EXAMPLE', 'bank.example'],
  ['FROM:<ceo@bank.example>', 'bank.example'],
  ['From: "The CEO" <ceo@bank.example>', 'bank.example'],
  ['From: The (real) CEO <ceo@bank.example> (of the bank)', 'bank.example'],
  ['From: ceo@bank.example (The CEO)', 'bank.example'],
  ['From:\r\n\t<ceo@bank.example>', 'bank.example'],
  ['From: =?utf-8?q?Ren=C3=A9?= <ceo@bank.example>', 'bank.example'],
  ['From: "ceo@other.example" <ceo@bank.example>', 'bank.example'],
  ['From: ceo@bank.example <ceo@bank.example>', 'bank.example'],
  ['From: "a, b <x>"@bank.example', 'bank.example'],
  ['From: a@bank.example, "B" <b@bank.example>', 'bank.example'],
  ['From: ceo@sub_domain.bank.example', 'sub_domain.bank.example'],
  ['From: ceo@bücher.example', 'xn--bcher-kva.example'],
  ['From: René <ceo@XN--BCHER-KVA.example>', 'xn--bcher-kva.example'],
  ['From: ceo@bank.example,', 'bank.example'],
  ['From: ceo@localhost', 'localhost'],
]

for (const [field, domain] of sound) {
  test(`one author domain is read: ${JSON.stringify(field)}`, () => {
    assert.deepEqual(readAuthorDomains(header(field)), { domains: [domain], fault: null })
  })
}

const bank = 'bank.example'
const evil = 'evil.example'
const encodedBank = `=?utf-8?B?${Buffer.from('<ceo@bank.example>').toString('base64')}?=`

/** The attacker owns evil.example. `domains` lists the domains whose policies are looked up. */
const tricks: [name: string, header: string | Buffer, domains: string[], fault: RegExp][] = [
  ['no From', 'Sender: ceo@bank.example', [], /no From field/],
  ['an empty From', 'From: ', [], /no domain/],
  ['two From fields', `From: a@${evil}\r\nFrom: ceo@${bank}`, [evil, bank], /several From fields/],
  ['two From fields of one domain', `From: a@${evil}\r\nFrom: b@${evil}`, [evil], /several From/],
  ['From in other letters', `From: a@${evil}\r\nfROM: ceo@${bank}`, [evil, bank], /several From/],
  ['a space before the colon', `From : ceo@${bank}\r\nFrom: a@${evil}`, [bank, evil], /several From/],
  ['NUL in the name of a field', `From\0: ceo@${bank}\r\nFrom: a@${evil}`, [evil], /read as From/],
  ['a control before the name', `\x01From: ceo@${bank}\r\nFrom: a@${evil}`, [evil], /read as From/],
  ['a byte order mark', `\ufeffFrom: ceo@${bank}\r\nFrom: a@${evil}`, [evil], /read as From/],
  ['a From after a bare CR', `From: a@${evil}\r\nX: y\rFrom: ceo@${bank}`, [evil], /read as From/],
  ['a From after a bare LF', `From: a@${evil}\r\nX: y\nFrom: ceo@${bank}`, [evil, bank], /several From/],
  ['NUL within the address', `From: ceo@${bank}\0@${evil}`, [bank, evil], /control characters/],
  ['NUL after the address', `From: <ceo@${bank}>\0<a@${evil}>`, [bank, evil], /control characters/],
  ['two mailboxes', `From: ceo@${bank}, a@${evil}`, [bank, evil], /several domains/],
  ['two mailboxes in brackets', `From: <a@${evil}>, "CEO" <ceo@${bank}>`, [evil, bank], /several domains/],
  ['two brackets', `From: <ceo@${bank}> <a@${evil}>`, [bank, evil], /two angle brackets/],
  ['an address after the bracket', `From: <a@${evil}> ceo@${bank}`, [evil], /after an address/],
  ['two @', `From: <ceo@${bank}@${evil}>`, [bank, evil], /no address/],
  ['a source route', `From: <@${bank}:a@${evil}>`, [evil, bank], /no address/],
  ['an address in a quoted local part', `From: "a@${evil}"@${bank}`, [bank, evil], /several domains/],
  ['a list in brackets', `From: <ceo@${bank}, a@${evil}>`, [bank, evil], /no address/],
  ['an address as the name', `From: ceo@${bank} <a@${evil}>`, [evil], /another address as a name/],
  ['a group', `From: CEO: ceo@${bank};`, [bank], /a group/],
  ['an empty group', 'From: undisclosed:;', [], /a group/],
  ['a group and a mailbox', `From: CEO:;, a@${evil}`, [evil], /a group/],
  ['a comment within the address', `From: <ceo@${bank}(.${evil})>`, [bank], /no address/],
  ['a comment in the middle of it', `From: ceo@(x)${bank}`, [bank], /no address/],
  ['a comment without its end', `From: a@${evil} (ceo@${bank}`, [evil], /comment without its end/],
  ['a quote without its end', `From: "a@${evil}`, [evil], /quote without its end/],
  ['a bracket without its end', `From: <a@${evil}`, [evil], /without its end/],
  ['an encoded word as the address', `From: ${encodedBank}`, [bank], /no address/],
  ['an encoded word beside an address', `From: ${encodedBank}, a@${evil}`, [evil, bank], /no address/],
  [
    'an encoded word in the local part',
    `From: =?utf-8?q?ceo=40${bank}?=@${evil}`,
    [evil, bank],
    /no address/,
  ],
  ['white space within the domain', `From: <ceo@bank .example>`, [bank, 'bank'], /no address/],
  ['white space around all of it', 'From: <ceo @ bank . example>', [bank], /no address/],
  ['a comment within the domain', 'From: <ceo@bank(x).example>', [bank, 'bank'], /no address/],
  ['a dot behind the domain', `From: ceo@${bank}.`, [bank], /no address/],
  ['a mark behind the domain', `From: ceo@${bank}!`, [bank], /no address/],
  ['a name without end', `From: "${'x'.repeat(11_000)}" <ceo@${bank}>`, [], /too long/],
  [
    'three that are no addresses before one that is',
    `From: <a b@d1.example>, <a b@d2.example>, <a b@d3.example>, CEO <ceo@${bank}>`,
    [bank, 'd1.example', 'd2.example'],
    /no address/,
  ],
  ['a fold within the domain', `From: <ceo@${bank}\r\n .${evil}>`, [`${bank}.${evil}`, bank], /no address/],
  ['a quoted pair', `From: <ceo@${bank}\\@${evil}>`, [bank, evil], /no address/],
  ['an address literal', 'From: ceo@[192.0.2.1]', [], /no address/],
  ['a number as the domain', 'From: ceo@192.0.2.1', [], /no address/],
  ['no domain', 'From: MAILER-DAEMON', [], /no address/],
  ['an empty label', 'From: ceo@bank..example', [], /no address/],
  [
    'bytes that are not UTF-8',
    Buffer.from('From: ceo@b\xfccher.example', 'latin1'),
    ['xn--bcher-kva.example'],
    /not UTF-8/,
  ],
  [
    'many domains',
    `From: ${[1, 2, 3, 4, 5].map((n) => `a@d${n}.example`).join(', ')}`,
    ['d1.example', 'd2.example', 'd3.example'],
    /several domains/,
  ],
  ['an endless field', `From: a@${evil}, ${' '.repeat(11_000)}ceo@${bank}`, [evil], /too long/],
]

for (const [name, text, domains, fault] of tricks) {
  test(`check 55: no author domain is believed: ${name}`, () => {
    const read = readAuthorDomains(header(text))
    assert.match(read.fault ?? 'none', fault)
    assert.deepEqual(read.domains, domains)
  })
}

test('a header too large to be read whole yields no author domain', () => {
  const text = `From: a@${evil}\r\n${'X: y\r\n'.repeat(11_000)}From: ceo@${bank}`
  assert.match(readAuthorDomains(header(text)).fault ?? '', /too large/)
})

const pieces = [
  ...[
    'ceo@bank.example',
    'a@evil.example',
    '<',
    '>',
    '"',
    '(',
    ')',
    ',',
    ';',
    ':',
    '@',
    ' ',
    '\t',
    '.',
    '\\',
  ],
  ...[
    'CEO',
    '=?utf-8?q?',
    '=40',
    '?=',
    '\0',
    'é',
    '\r\n ',
    '<a@evil.example>',
    '"x" ',
    '\r\nFrom: ',
    '\rFrom:',
  ],
]
const domainOf = (email: string) => email.slice(email.lastIndexOf('@') + 1)
const parts = fc.array(fc.constantFrom(...pieces), { maxLength: 6 })
/** At least half of them contain an address, because few of the others are accepted. */
const fields = fc
  .tuple(parts, fc.constantFrom('', 'ceo@bank.example'), parts)
  .map(([before, address, after]) => [...before, address, ...after].join(''))

test('check 55: an accepted author domain is that of every address shown', () => {
  let believed = 0
  const property = fc.property(fields, (value) => {
    const bytes = Buffer.from(`From: ${value}\r\n\r\n`)
    const { domains, fault } = readAuthorDomains(bytes)
    assert.ok(domains.length <= 3)
    const shown = parseAddressList(scanHeader(bytes).first('from') ?? '', 1000)
    const author = parseMail(bytes).from
    const first = author && toDnsName(domainOf(author.email))
    if (first) assert.equal(domains[0], first, 'the policy of the domain that is shown is looked up')
    if (fault !== null) return
    believed++
    assert.equal(domains.length, 1)
    assert.ok(shown.length > 0)
    for (const { email } of shown) {
      assert.equal(toDnsName(domainOf(email)), domains[0])
    }
  })
  fc.assert(property, { numRuns: 5_000 })
  assert.ok(believed > 100)
})
