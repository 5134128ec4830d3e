// A stream decodes to what the whole body decodes to, wherever it is cut.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decodeTransferEncoding, isDecodable } from './transfer-encoding.ts'
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
const sizes = fc.array(fc.nat(120), { maxLength: 40 })

for (const encoding of ['base64', 'quoted-printable', 'none'] as const)
  test(`check 58: ${encoding} comes out of a stream as out of the whole`, async () => {
    await fc.assert(
      fc.asyncProperty(text, sizes, async (pieces, sizes) => {
        const body = Buffer.from(pieces.join(''), 'latin1')
        // What is no base64 is not read as such by the caller.
        fc.pre(encoding !== 'base64' || isDecodable(body, encoding))
        const whole = decodeTransferEncoding(body, encoding)
        assert.deepEqual(await collect(decodeStream(cut(body, sizes), encoding)), whole)
      }),
      { numRuns: 3000 },
    )
  })

test('check 60: 25 MB of padding take no time, at once and piece by piece', async () => {
  for (const run of ['=', 'a=', '====\r\n', '=a']) {
    const body = Buffer.alloc(25 << 20, run)
    const sizes = Array.from({ length: 400 }, () => 65_536)
    const before = process.cpuUsage()
    const whole = decodeTransferEncoding(body, 'base64')
    assert.deepEqual(await collect(decodeStream(cut(body, sizes), 'base64')), whole)
    const { user } = process.cpuUsage(before)
    assert.ok(user < 1_500_000, `${JSON.stringify(run)} took ${user} µs`)
  }
})

test('many padded pieces end where the whole ends', async () => {
  const body = Buffer.from('QQ=='.repeat(100_001))
  const whole = decodeTransferEncoding(body, 'base64')
  assert.equal(whole.length, 100_000)
  assert.equal((await collect(decodeStream(cut(body, [1, 2, 200_000]), 'base64'))).length, 100_000)
})
