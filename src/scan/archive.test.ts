// Tests that archives that a scanner skips are found, that ordinary ones are not, and that no bytes take long.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { crc32, deflateRawSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { inCpuTime } from '../../tests/support/cpu-time.ts'
import { ArchiveSearch } from './archive.ts'
import { encryptedSample, nestedSample } from './samples.ts'

function findUnscannable(content: Buffer, pieceBytes = 65_536): string | null {
  const search = new ArchiveSearch()
  for (let at = 0; at < content.length; at += pieceBytes) search.add(content.subarray(at, at + pieceBytes))
  return search.findUnscannable()
}

/** A ZIP archive of deflated files, with both kinds of headers. */
function zip(files: Buffer[], sizeSaid?: number): Buffer {
  const [locals, centrals]: [Buffer[], Buffer[]] = [[], []]
  for (const content of files) {
    const packed = deflateRawSync(content)
    const about = Buffer.alloc(26)
    about.writeUInt16LE(20, 0)
    about.writeUInt16LE(8, 4)
    about.writeUInt32LE(crc32(content), 10)
    about.writeUInt32LE(packed.length, 14)
    about.writeUInt32LE(sizeSaid ?? content.length, 18)
    about.writeUInt16LE(1, 22)
    locals.push(Buffer.from('PK\x03\x04', 'latin1'), about, Buffer.from('f'), packed)
    centrals.push(Buffer.from('PK\x01\x02\x14\0', 'latin1'), about, Buffer.alloc(14), Buffer.from('f'))
  }
  return Buffer.concat([...locals, ...centrals, Buffer.from('PK\x05\x06', 'latin1'), Buffer.alloc(18)])
}

const zeros = Buffer.alloc(12 << 20)
const inZip64 = 0xffffffff
const justEncryptedWithin = Buffer.concat([randomBytes(1000), encryptedSample, randomBytes(1000)])

const cases: [what: string, content: Buffer, reason: RegExp | null][] = [
  ['nothing', Buffer.alloc(0), null],
  ['text', Buffer.from('PK is not enough, PK\x03\x04 at the end neither: PK\x03\x04', 'latin1'), null],
  ['noise', randomBytes(1 << 20), null],
  ['an archive', zip([Buffer.from('one'), randomBytes(50_000)]), null],
  ['archives within each other', nestedSample, null],
  ['a small file of zeros', zip([Buffer.alloc(9 << 20)]), null],
  ['text that packs well', zip([Buffer.from('date,amount,remark\n2026-11-21,17,paid\n'.repeat(1000))]), null],
  ['an encrypted archive', encryptedSample, /encrypted/],
  ['an encrypted archive within another file', justEncryptedWithin, /encrypted/],
  ['a bomb', zip([zeros]), /unpacks to/],
  ['a bomb of many files', zip(Array.from({ length: 200 }, () => Buffer.alloc(100_000))), /unpacks to/],
  ['a bomb in a bomb', zip([zip([zeros]), zip([zeros])]), null],
  ['a stored bomb in an archive', Buffer.concat([randomBytes(100), zip([zeros])]), /unpacks to/],
  ['a bomb for gzip', gzipSync(zeros), /unpacks to/],
  ['an archive that says it is huge', zip([randomBytes(100)], 200 << 20), /archive of/],
  ['an archive that hides its size', zip([randomBytes(100)], inZip64), /archive of/],
  ['too many files', zip(Array.from({ length: 10_001 }, () => Buffer.alloc(0))), /10000 files/],
  ['too large', Buffer.alloc((100 << 20) + 1), /larger/],
]

for (const [what, content, reason] of cases)
  test(`check 64: ${what} ${reason ? 'cannot be called clean' : 'is left to the scanner'}`, () => {
    if (reason) assert.match(findUnscannable(content) ?? '', reason)
    else assert.equal(findUnscannable(content), null)
    // The result is the same wherever the content is cut.
    const [whole, least] = [findUnscannable(content, content.length), content.length > 1 << 20 ? 1021 : 1]
    for (const pieceBytes of [least, least + 6]) assert.equal(findUnscannable(content, pieceBytes), whole)
  })

test('check 64: any bytes are inspected, and bytes made of headers in bounded time', () => {
  const piece = fc.oneof(
    fc.constantFrom('PK\x03\x04', 'PK\x01\x02', 'PK\x05\x06', '\x1f\x8b', '\0\0\0\0', '\xff\xff\xff\xff'),
    fc.string({ maxLength: 30 }),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 50 }), (pieces) => {
      const content = Buffer.from(pieces.join(''), 'latin1')
      assert.equal(findUnscannable(content, 5), findUnscannable(content))
    }),
    { numRuns: 2000 },
  )
  for (const header of [
    'PK\x03\x04',
    'PK\x01\x02',
    'PK\x03\x04\xff',
    `PK\x03\x04${'\xff'.repeat(26)}`,
    'PK',
    'PPPK\x03',
  ]) {
    const content = Buffer.alloc(25 << 20, header, 'latin1')
    inCpuTime(500, () => findUnscannable(content), JSON.stringify(header))
  }
})
