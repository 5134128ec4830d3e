// The computations of the sending pages, without a browser: tables, address lists, time axes, and paced calls.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { domainToUnicode } from 'node:url'
import fc from 'fast-check'
import { Batch } from '../../dashboard/src/api/batch.ts'
import { ApiError } from '../../dashboard/src/api/client.ts'
import { makeTimeAxis } from '../../dashboard/src/pages/sending/time-axis.ts'
import { readSuppressionList } from '../../dashboard/src/pages/suppressions/suppression-list.ts'
import { duration } from '../../dashboard/src/parts/duration.ts'
import { readAddresses } from '../../dashboard/src/parts/list/address-list.ts'
import { readCsv, writeCsv } from '../../dashboard/src/parts/list/csv.ts'
import { unicodeDomain } from '../../dashboard/src/parts/unicode-domain.ts'
import { until } from '../support/until.ts'

test('a table reads back as it was written, and none of its fields is a formula', () => {
  const field = fc.string({
    unit: fc.constantFrom('a', '=', '+', '@', '-', '"', ',', ';', '\n', '\t', 'é', ' '),
  })
  fc.assert(
    fc.property(fc.array(fc.tuple(field, field), { minLength: 1 }), (rows) => {
      const read = readCsv(writeCsv([['x', 'y'], ...rows])).slice(1)
      const wanted = rows.filter(([left, right]) => left !== '' || right !== '')
      assert.equal(read.length, wanted.length)
      for (const [index, row] of read.entries())
        for (const [at, text] of row.fields.entries()) {
          assert.doesNotMatch(text, /^[=+\-@\t\r]/)
          assert.equal(
            text.replace(/^'(?=[=+\-@\t\r])/, ''),
            wanted[index]![at]!.replace(/^'(?=[=+\-@\t\r])/, ''),
          )
        }
    }),
  )
})

const lists: [text: string, emails: string[], duplicates: number, others: number[]][] = [
  ['ada@far.test\ngrace@far.test', ['ada@far.test', 'grace@far.test'], 0, []],
  ['\uFEFFname;E-Mail\r\nAda;ada@far.test\r\nAda;ADA@far.test', ['ada@far.test'], 1, []],
  [
    'Ada <ada@far.test>\nnonsense\n\n"Hopper, Grace" <grace@far.test>\nno',
    ['ada@far.test', 'grace@far.test'],
    0,
    [2, 5],
  ],
  ['1\tada@far.test\n2\tgrace@far.test', ['ada@far.test', 'grace@far.test'], 0, []],
  ["email\n'=cmd@far.test", ['=cmd@far.test'], 0, []],
  ['', [], 0, []],
]

test('addresses are found in lists and columns, each once, and other lines are listed', () => {
  for (const [text, emails, duplicates, others] of lists) {
    const found = readAddresses(text)
    assert.deepEqual(
      [found.addresses.map(({ email }) => email), found.duplicates, found.others.map(({ line }) => line)],
      [emails, duplicates, others],
      JSON.stringify(text),
    )
  }
})

test('a line without an address is shown as it was written', () => {
  const { others } = readAddresses('email;reason\r\nada@far.test;bounce\r\nnot-an-address;;\r\n')
  assert.deepEqual(others, [{ email: 'not-an-address;;', line: 3 }])
})

const nowMs = Date.parse('2026-11-21T09:00:00Z')
type Found = [reason: string, note: string | null, createdAt: string | null]
const exports: [service: string, rows: string[], found: Found[]][] = [
  [
    'SendGrid',
    [
      'status,reason,email,created',
      '5.1.1,"550 5.1.1 user, unknown",a@far.test,1443651125',
      '5.2.2,552 mailbox full at 10.5.1.1,b@far.test,soon',
    ],
    [
      ['hard_bounce', '550 5.1.1 user, unknown', '2015-09-30T22:12:05.000Z'],
      ['manual', '552 mailbox full at 10.5.1.1', null],
    ],
  ],
  [
    'Postmark',
    [
      'EmailAddress,SuppressionReason,Origin,CreatedAt',
      'a@far.test,HardBounce,Recipient,2019-12-17T08:58:33-05:00',
      'b@far.test,SpamComplaint,Recipient,2019-12-17T08:58:33Z',
      'c@far.test,ManualSuppression,Customer,2027-01-01T00:00:00Z',
    ],
    [
      ['hard_bounce', null, '2019-12-17T13:58:33.000Z'],
      ['complaint', null, '2019-12-17T08:58:33.000Z'],
      ['manual', null, null],
    ],
  ],
  [
    'Mailgun',
    ['address,code,error,created_at', 'a@far.test,550,No such mailbox,"Mon, 06 May 2024 18:11:58 UTC"'],
    [['manual', 'No such mailbox', '2024-05-06T18:11:58.000Z']],
  ],
  [
    'Resend',
    ['id,email,origin,created_at', '1,a@far.test,bounce,2023-10-06 23:47:56.678+00'],
    [['hard_bounce', null, '2023-10-06T23:47:56.678Z']],
  ],
  [
    'SES',
    ['EmailAddress,Reason,LastUpdateTime', 'a@far.test,BOUNCE,1700000000.5', 'b@far.test,COMPLAINT,1e9'],
    [
      ['hard_bounce', null, '2023-11-14T22:13:20.500Z'],
      ['complaint', null, null],
    ],
  ],
  [
    'our own',
    ['email,reason,submissionId,createdAt,note', "a@far.test,unsubscribe,,2026-11-21T08:59:59.999Z,'=1+1"],
    [['unsubscribe', '=1+1', '2026-11-21T08:59:59.999Z']],
  ],
  [
    'no headings',
    ['a@far.test;HardBounce;2026-01-01', 'b@far.test;Mailbox\u202eclosed;2026-02-30', 'c@far.test;opt-out;'],
    [
      ['hard_bounce', null, '2026-01-01T00:00:00.000Z'],
      ['manual', 'Mailbox closed', null],
      ['unsubscribe', null, null],
    ],
  ],
  [
    'addresses with names',
    ['name;email;phone', 'constructor;a@far.test;1443651125'],
    [['manual', null, null]],
  ],
]
for (const [service, rows, found] of exports)
  test(`the reason and the date of a suppression are read as exports write them: ${service}`, () => {
    const { suppressions } = readSuppressionList(rows.join('\r\n'), nowMs)
    const read = suppressions.map(({ reason, note, createdAt }): Found => [reason, note, createdAt])
    assert.deepEqual(read, found)
  })

test('notes of any list are short lines, and its times are past', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      'a@far.test',
      'b@far.test',
      'email',
      'reason',
      'note',
      'created',
      'HardBounce',
      '9999-12-31',
    ),
    fc.constantFrom('0001-01-01', '2026-01-01T24:61:00+99:99', '9999999999', '-1', '\u202e', '\ud800', '\0'),
    fc.string({ unit: 'binary' }),
    fc.string({ unit: 'binary', minLength: 300, maxLength: 1_200 }),
  )
  const row = fc.array(piece, { maxLength: 5 }).map((fields) => fields.join(','))
  fc.assert(
    fc.property(fc.array(row), (rows) => {
      for (const { reason, note, createdAt } of readSuppressionList(rows.join('\n'), nowMs).suppressions) {
        assert.match(reason, /^(?:manual|hard_bounce|complaint|unsubscribe)$/)
        assert.ok(note === null || (/^[^\p{C}\u2028\u2029]+$/u.test(note) && [...note].length <= 200))
        assert.ok(createdAt === null || (createdAt > '1970' && Date.parse(createdAt) < nowMs), `${createdAt}`)
      }
    }),
  )
})

test('time runs from left to right on an axis, whatever the waits between', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(10 ** 9), { minLength: 1, maxLength: 40 }), (moments) => {
      const axis = makeTimeAxis(moments)
      const places = [...moments].sort((a, b) => a - b).map((moment) => axis.placeOf(moment))
      assert.ok(places.every((place, index) => place >= (places[index - 1] ?? 0) && place <= 1))
      const { marks } = axis
      assert.ok(marks.slice(1).every((mark, index) => mark.place - marks[index]!.place >= 0.15))
    }),
  )
})

test('durations show at most two units', () => {
  const told = [0, 38, 999, 1_240, 10_000, 59_600, 61_000, 3_599_900, 7_260_000, 90_000_000].map(duration)
  assert.deepEqual(told, [
    '0 ms',
    '38 ms',
    '999 ms',
    '1.2 s',
    '10 s',
    '1 min',
    '1 min 1 s',
    '1 h',
    '2 h 1 min',
    '1 d 1 h',
  ])
})

test('domain names are decoded as Node decodes them', () => {
  for (const name of [
    'xn--bcher-kva.example',
    'xn--fiqs8s',
    'xn--80ak6aa92e.test',
    'plain.example',
    'xn--e1afmkfd.xn--p1ai',
  ])
    assert.equal(unicodeDomain(name), domainToUnicode(name))
  assert.equal(unicodeDomain('xn--\u0000.example'), 'xn--\u0000.example')
})

const refusal = (status: number, retryAfter = '') =>
  new ApiError(new Response(null, { status, headers: retryAfter ? { 'retry-after': retryAfter } : {} }), {})

test('many calls resume after the pause that the service requests, and a refused call is reported', async () => {
  let [called, running, mostRunning] = [0, 0, 0]
  const batch = new Batch(
    Array.from({ length: 20 }, (_, index) => index),
    async (item) => {
      mostRunning = Math.max(mostRunning, ++running)
      await new Promise(setImmediate)
      running--
      if (++called === 5) throw refusal(429, '1')
      if (item === 13) throw refusal(422)
      return item
    },
  )
  batch.start()
  await until('it to wait', () => batch.read().state === 'waiting')
  assert.ok(batch.read().done < 20)
  await until('it to be done', () => batch.read().state === 'done')
  const { done, results, failures } = batch.read()
  assert.deepEqual([done, failures.map(({ item }) => item), called], [20, [13], 21])
  assert.deepEqual(
    [...results, 13].sort((a, b) => a - b),
    Array.from({ length: 20 }, (_, index) => index),
  )
  assert.ok(mostRunning <= 3)
})

test('many calls can be paused, resumed and ended', async () => {
  const open: (() => void)[] = []
  const release = async () => {
    for (const end of open.splice(0)) end()
    await new Promise(setImmediate)
  }
  const batch = new Batch(
    [1, 2, 3, 4, 5, 6, 7, 8],
    (item) => new Promise((end) => open.push(() => end(item))),
  )
  batch.start()
  batch.hold()
  await release()
  assert.deepEqual([batch.read().state, batch.read().done, open.length], ['held', 3, 0])
  batch.start()
  assert.equal(open.length, 3)
  batch.cancel()
  await release()
  assert.deepEqual([batch.read().state, batch.read().done, open.length], ['cancelled', 6, 0])
})
