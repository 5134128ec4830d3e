// Compares body hashes with a direct implementation of RFC 6376, for any bytes in any pieces.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { bodyForms } from '../../../tests/support/sign-mail.ts'
import { BodyDigest } from './body-digest.ts'

const forms = ['simple', 'relaxed'] as const

function digestOf(
  form: (typeof forms)[number],
  pieces: readonly Buffer[],
  lengths: (number | null)[],
): BodyDigest {
  const digest = new BodyDigest(form, lengths)
  for (const piece of pieces) digest.update(piece)
  digest.end()
  return digest
}

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest()

const bodies = [
  ...['', '\r\n', '\r\n\r\n', ' ', ' \r\n', '\t\r\n \r\n', 'a', 'a\r\n', 'a\r\n\r\n', 'a \r\n', 'a\r\n \r\n'],
  ...[
    '\r',
    '\n',
    '\r\r\n',
    '\n\r\n',
    'a\r',
    'a \r',
    ' \rb',
    ' \r\r\n',
    ' \n',
    'a\n\n',
    '\r\n\r',
    '\r\n\ra',
    ' \r \r\n',
  ],
]

for (const form of forms) {
  test(`${form}: ${bodies.length} short bodies have the same digest, however they are cut`, () => {
    for (const body of bodies) {
      const wanted = sha256(Buffer.from(bodyForms[form](body), 'latin1'))
      for (let cut = 0; cut <= body.length; cut++) {
        const pieces = [Buffer.from(body.slice(0, cut)), Buffer.from(body.slice(cut))]
        const found = digestOf(form, pieces, [null]).hashOf(null)
        assert.deepEqual(found, { digest: wanted, isWhole: true }, `${JSON.stringify(body)} at ${cut}`)
      }
    }
  })

  test(`${form}: any body and its prefixes have the same digest, however they are cut`, () => {
    const piece = fc
      .array(fc.constantFrom('\r\n', ' ', '\t', '\r', '\n', 'a', 'word', '\xff', '\r\n\r\n', ' \r\n'), {
        maxLength: 12,
      })
      .map((tokens) => Buffer.from(tokens.join(''), 'latin1'))
    const property = fc.property(
      fc.array(piece, { maxLength: 12 }),
      fc.array(fc.nat(60), { maxLength: 4 }),
      (pieces, lengths) => {
        const digest = digestOf(form, pieces, [...lengths, null])
        const canonical = Buffer.from(bodyForms[form](Buffer.concat(pieces).toString('latin1')), 'latin1')
        for (const length of lengths) {
          const wanted =
            length > canonical.length
              ? null
              : { digest: sha256(canonical.subarray(0, length)), isWhole: length === canonical.length }
          assert.deepEqual(digest.hashOf(length), wanted)
        }
        assert.deepEqual(digest.hashOf(null), { digest: sha256(canonical), isWhole: true })
      },
    )
    fc.assert(property, { numRuns: 1000 })
  })

  test(`${form}: a body larger than any buffer keeps its digest, with white space across edges`, () => {
    const text = `${'word '.repeat(30_000)}\r\n${' '.repeat(70_000)}\r\n${'\r\n'.repeat(50_000)}end \r\n \r\n`
    const digest = digestOf(form, [Buffer.from(text)], [null])
    assert.deepEqual(digest.hashOf(null)!.digest, sha256(Buffer.from(bodyForms[form](text))))
  })

  test(`${form}: white space that changes in few or many places is digested, with and without tabs`, () => {
    for (const line of ['a  b \r\n', 'a\tb\t \r\n', 'many words, then\r\n  a line that is indented \r x\r\n'])
      for (const count of [10, 500, 20_000]) {
        const text = line.repeat(count)
        const digest = digestOf(form, [Buffer.from(text.slice(0, 7)), Buffer.from(text.slice(7))], [null])
        assert.deepEqual(digest.hashOf(null)!.digest, sha256(Buffer.from(bodyForms[form](text))), line)
      }
  })
}

test('bytes after the last l= are counted and not kept, unless the whole body is wanted', () => {
  const digest = digestOf('simple', [Buffer.from('one\r\ntwo\r\n')], [5])
  assert.deepEqual(digest.hashOf(5), { digest: sha256(Buffer.from('one\r\n')), isWhole: false })
  assert.equal(digest.hashOf(6), null)
})
