// DNS names as text and as bytes, for any bytes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readWireName, writeName } from './wire-name.ts'

const long = `${'a'.repeat(63)}.`.repeat(3)

for (const [text, bytes] of [
  ['', '\x00'],
  ['.', '\x00'],
  ['example', '\x07example\x00'],
  ['Mail.example.', '\x04Mail\x07example\x00'],
  ['a\\.b.example', '\x03a.b\x07example\x00'],
  ['a\\\\b', '\x03a\\b\x00'],
  ['a\\000b\\255', '\x04a\x00b\xff\x00'],
  ['\\a', '\x01a\x00'],
  ['é', '\x02\xc3\xa9\x00'],
  [`${long}${'b'.repeat(61)}`, `${`\x3f${'a'.repeat(63)}`.repeat(3)}\x3d${'b'.repeat(61)}\x00`],
] as const)
  test(`the name ${JSON.stringify(text.slice(0, 20))} is written as bytes`, () => {
    assert.equal(writeName(text)?.toString('latin1'), bytes)
  })

for (const text of [
  '..',
  '.a',
  'a..b',
  'a..',
  'a\\',
  'a\\256',
  'a'.repeat(64),
  `${long}${'b'.repeat(62)}`,
  'a.'.repeat(9_999),
])
  test(`${JSON.stringify(text.slice(0, 20))} is refused as a DNS name`, () => {
    assert.equal(writeName(text), null)
  })

for (const [what, bytes, start, name, end] of [
  ['a pointer', '\x03com\x00\x04MAIL\xc0\x00!', 5, 'mail.com', 12],
  ['a pointer to a pointer', '\x01a\x00\xc0\x00\x01b\xc0\x03', 5, 'b.a', 9],
  ['the root', '\x00', 0, '', 1],
  ['a dot within a label', '\x03a.b\x00', 0, 'a\\.b', 5],
  ['a zero byte within a label', '\x03a\x00b\x00', 0, 'a\\000b', 5],
] as const)
  test(`a name with ${what} is read`, () => {
    assert.deepEqual(readWireName(Buffer.from(bytes, 'latin1'), start), { name, end })
  })

for (const [what, bytes, start] of [
  ['nothing', '', 0],
  ['a label that is cut off', '\x04ab', 0],
  ['a name without its end', '\x01a', 0],
  ['half a pointer', '\x01a\xc0', 0],
  ['a pointer to itself', '\xc0\x00', 0],
  ['a pointer forward', '\xc0\x02\x00', 0],
  ['a pointer round and round', '\x01a\xc0\x00', 2],
  ['a label of the types that were given up', '\x41a\x00', 0],
  ['256 bytes', `${`\x3f${'a'.repeat(63)}`.repeat(4)}\x00`, 0],
] as const)
  test(`${what} is refused as a name`, () =>
    assert.equal(readWireName(Buffer.from(bytes, 'latin1'), start), null))

test('a name with 128 pointers in a row is refused', () => {
  const pointers = Array.from({ length: 200 }, (_, index) => [0xc0, Math.max(0, 2 * index - 1)]).flat()
  const message = Buffer.from([0, ...pointers])
  assert.equal(readWireName(message, 1 + 2 * 126)?.name, '')
  assert.equal(readWireName(message, 1 + 2 * 127), null)
})

const labels = fc.array(fc.uint8Array({ minLength: 1, maxLength: 20 }), { maxLength: 8 })

test('any labels survive a round trip in lower case, and different names stay different', () => {
  fc.assert(
    fc.property(labels, labels, (one, other) => {
      const [first, second] = [one, other].map((name) =>
        Buffer.concat([...name.flatMap((label) => [Buffer.of(label.length), label]), Buffer.of(0)]),
      ) as [Buffer, Buffer]
      const { name, end } = readWireName(first, 0)!
      assert.equal(end, first.length)
      const lower = (bytes: Buffer) => bytes.toString('latin1').replaceAll(/[A-Z]/g, (c) => c.toLowerCase())
      assert.equal(writeName(name)!.toString('latin1'), lower(first))
      assert.equal(name === readWireName(second, 0)!.name, lower(first) === lower(second))
    }),
    { numRuns: 500 },
  )
})

test('any text is refused or survives a round trip as a name', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
      const bytes = writeName(text)
      if (!bytes) return
      assert.ok(bytes.length <= 255)
      assert.equal(readWireName(bytes, 0)?.end, bytes.length)
    }),
    { numRuns: 500 },
  )
})
