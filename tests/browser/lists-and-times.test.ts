// What the pages of sending compute, without a browser: tables, lists of addresses, axes of time, many calls with pauses.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { domainToUnicode } from 'node:url'
import fc from 'fast-check'
import { Batch } from '../../dashboard/src/api/batch.ts'
import { ApiError } from '../../dashboard/src/api/client.ts'
import { makeTimeAxis } from '../../dashboard/src/pages/sending/time-axis.ts'
import { readAddresses } from '../../dashboard/src/parts/address-list.ts'
import { readCsv, writeCsv } from '../../dashboard/src/parts/csv.ts'
import { duration } from '../../dashboard/src/parts/duration.ts'
import { unicodeDomain } from '../../dashboard/src/parts/unicode-domain.ts'
import { until } from '../support/until.ts'

test('a table reads back as it was written, and no field of it is a formula', () => {
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

test('addresses are found in lists and in the column that has them, each once, with what is none', () => {
  for (const [text, emails, duplicates, others] of lists) {
    const found = readAddresses(text)
    assert.deepEqual(
      [found.addresses.map(({ email }) => email), found.duplicates, found.others.map(({ line }) => line)],
      [emails, duplicates, others],
      JSON.stringify(text),
    )
  }
})

test('time goes from left to right on an axis, whatever the waits between', () => {
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

test('durations have two units at most', () => {
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

test('names of domains are decoded as Node does it', () => {
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

test('many calls go on after the pause that the service asks for; what is refused for good is told, the rest done', async () => {
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

test('many calls are held, gone on with, and ended', async () => {
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
