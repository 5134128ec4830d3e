// Tests header fields one by one: their order, bytes, decoded values and limits.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { findFields, readField } from './raw-fields.ts'

function fieldsOf(bytes: Buffer | string) {
  const block = Buffer.from(bytes)
  const { spans, isCut } = findFields(block)
  return { fields: spans.map((span) => readField(block, span)), isCut }
}

const tables: [text: string | Buffer, fields: [name: string, value: string, raw: string][]][] = [
  ['', []],
  ['\r\nSubject: no\r\n', []],
  ['Subject: Hello\r\n\r\nFrom: body\r\n', [['Subject', 'Hello', 'Subject: Hello']]],
  ['SUBJECT :  Hello ', [['SUBJECT', 'Hello', 'SUBJECT :  Hello ']]],
  [
    'A: 1\r\nb: 2\r\nA: 3\r\n\r\n',
    [
      ['A', '1', 'A: 1'],
      ['b', '2', 'b: 2'],
      ['A', '3', 'A: 3'],
    ],
  ],
  [
    'A: 1\r\n\t2\r\n 3\r\nB:\r\n',
    [
      ['A', '1 2 3', 'A: 1\r\n\t2\r\n 3'],
      ['B', '', 'B:'],
    ],
  ],
  [' astray\r\nno field\r\n goes on\r\n: none\r\nA: 1\r\n', [['A', '1', 'A: 1']]],
  ['S: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n', [['S', 'Grüße', 'S: =?utf-8?q?Gr=C3=BC=C3=9Fe?=']]],
  ['S: =?utf-8?q?a=0D=0ABcc:_b=00=07?=\r\n', [['S', 'a Bcc: b  ', 'S: =?utf-8?q?a=0D=0ABcc:_b=00=07?=']]],
  ['S: Grüße\r\n', [['S', 'Grüße', 'S: Grüße']]],
  [Buffer.from('S: Gr\xfc\xdfe\x80\r\n', 'latin1'), [['S', 'Grüße€', 'S: Grüße\x80']]],
  ['S: a\0b\x07c\r\n', [['S', 'a b c', 'S: a\ufffdb\x07c']]],
]
for (const [text, wanted] of tables)
  test(`header fields: a header is split into fields: ${JSON.stringify(String(text))}`, () => {
    const { fields, isCut } = fieldsOf(text)
    assert.deepEqual(
      fields.map(({ name, value, raw }) => [name, value, raw]),
      wanted,
    )
    assert.equal(isCut, false)
  })

test('header fields: at most 10,000 are returned, without the field that 1 MiB cuts', () => {
  const many = (count: number) => fieldsOf(`${'A: 1\r\n'.repeat(count)}\r\n`)
  assert.deepEqual([many(10_000).fields.length, many(10_000).isCut], [10_000, false])
  assert.deepEqual([many(10_001).fields.length, many(10_001).isCut], [10_000, true])
  const long = (after: string) => fieldsOf(Buffer.from(`A: 1\r\nB: ${'x'.repeat(1 << 20)}${after}`))
  for (const after of ['', '\r\n', '\r\n y']) {
    const { fields, isCut } = long(after)
    assert.deepEqual([fields.map(({ name }) => name), isCut], [['A'], true])
  }
  assert.equal(long('\r\n\r\n').fields.length, 2)
})

test('header fields: any bytes yield whole fields, in order, that JSON can hold', () => {
  const piece = fc.oneof(
    fc
      .constantFrom('A: ', 'Subject:', '\r\n', '\n', ' ', '\t', ':', '=?utf-8?q?=C3', '?=', '\r\n\r\n')
      .map(Buffer.from),
    fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes)),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      const block = Buffer.concat(pieces)
      const { spans } = findFields(block)
      let last = 0
      for (const span of spans) {
        assert.ok(span.start >= last && span.end >= span.valueStart - 1 && span.end <= block.length)
        last = span.end
        for (const text of Object.values(readField(block, span))) {
          assert.ok(text.isWellFormed() && !text.includes('\0'))
        }
        assert.doesNotMatch(readField(block, span).value, /\p{Cc}/u)
      }
    }),
  )
})
