// Tests that a stream decodes to the same bytes as the whole body, wherever it is cut.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decodeBase64, decodeUuencode } from '../../../tests/support/decode-span.ts'
import { decodeQuotedPrintable } from './transfer-encoding.ts'
import { decodeStream } from './transfer-stream.ts'

async function* cut(body: Buffer, sizes: number[]): AsyncGenerator<Buffer> {
  let at = 0
  for (const size of sizes) {
    yield body.subarray(at, at + size)
    at += size
  }
  yield body.subarray(at)
}

async function collect(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const found: Buffer[] = []
  for await (const piece of pieces) found.push(piece)
  return Buffer.concat(found)
}

const text = fc.array(
  fc.oneof(
    fc.constantFrom(
      'QUJD',
      'QQ==',
      'QUI=',
      'Q',
      'QU',
      '=',
      '==',
      '\r\n',
      '\n',
      ' ',
      '\t',
      '-_',
      '+/',
      '!',
      '\xff',
      'begin 644 a\n',
      '#86)C\n',
      'M',
      '`\n',
      'end\n',
      `${' '.repeat(150)}\n`,
    ),
    fc.constantFrom(
      '=41',
      '=3D',
      '=4',
      '=\r\n',
      '= \t\r\n',
      '=\r',
      `=${' '.repeat(99)}`,
      `=${' '.repeat(120)}\n`,
    ),
    fc.base64String({ maxLength: 200 }),
    fc.string({ maxLength: 10 }),
  ),
  { maxLength: 40 },
)
const decodeAtOnce = {
  base64: decodeBase64,
  'quoted-printable': decodeQuotedPrintable,
  uuencode: decodeUuencode,
  none: (body: Buffer) => body,
}

const sizes = fc.array(fc.nat(120), { maxLength: 40 })

for (const encoding of ['base64', 'quoted-printable', 'uuencode', 'none'] as const)
  test(`check 58: ${encoding} decodes in a stream as it does whole`, async () => {
    await fc.assert(
      fc.asyncProperty(text, sizes, async (pieces, sizes) => {
        const start = encoding === 'uuencode' ? 'begin 644 a\n' : ''
        const body = Buffer.from(start + pieces.join(''), 'latin1')
        const whole = decodeAtOnce[encoding](body)
        assert.deepEqual(await collect(decodeStream(cut(body, sizes), encoding)), whole)
      }),
      { numRuns: 3000 },
    )
  })

test('check 60: 25 MB of padding decode in linear time', async () => {
  for (const run of ['=', 'a=', '====\r\n', '=a']) {
    const body = Buffer.alloc(25 << 20, run)
    const sizes = Array.from({ length: 400 }, () => 65_536)
    const before = process.cpuUsage()
    const decoded = await collect(decodeStream(cut(body, sizes), 'base64'))
    const { user } = process.cpuUsage(before)
    assert.deepEqual(decoded, decodeBase64(body))
    assert.ok(user < 1_500_000, `${JSON.stringify(run)} took ${user} µs`)
  }
})

test('many padded pieces decode to the same length as the whole', async () => {
  const body = Buffer.from('QQ=='.repeat(100_001))
  assert.equal((await collect(decodeStream(cut(body, [1, 2, 200_000]), 'base64'))).length, 100_000)
})
