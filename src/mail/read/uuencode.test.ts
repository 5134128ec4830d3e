// Tests uuencode as programs write it, as transport changes it, and in forms that no program should write.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { decodeSpan, sha256 } from '../../../tests/support/decode-span.ts'
import { type ParsedAttachment, parseMail } from './parse.ts'
import { transferEncoding } from './transfer-encoding.ts'
import { UuDecoder } from './uuencode.ts'

/** Encodes as POSIX does, with backquotes for zeros, or with spaces as older programs do. */
function encode(bytes: Buffer, zero = '`', lineEnd = '\r\n'): string {
  const sign = (value: number) => (value === 0 ? zero : String.fromCharCode(value + 32))
  const lines = ['begin 644 file.bin']
  for (let at = 0; at < bytes.length; at += 45) {
    const line = bytes.subarray(at, at + 45)
    let text = sign(line.length)
    for (let index = 0; index < line.length; index += 3) {
      const group = ((line[index]! << 16) | ((line[index + 1] ?? 0) << 8) | (line[index + 2] ?? 0)) >>> 0
      text += [18, 12, 6, 0].map((shift) => sign((group >> shift) & 63)).join('')
    }
    lines.push(text)
  }
  return [...lines, zero, 'end', ''].join(lineEnd)
}

const bytes = randomBytes(10_000)

function decode(text: string): Buffer {
  const decoder = new UuDecoder()
  return Buffer.concat([decoder.decode(Buffer.from(text, 'latin1')), decoder.end()])
}

/** A mail with one attachment, and that attachment as it is read. */
function attach(body: string): { raw: Buffer; attachment: ParsedAttachment } {
  const raw = Buffer.from(
    [
      'Content-Type: application/octet-stream; name=file.bin',
      'Content-Disposition: attachment',
      'Content-Transfer-Encoding: x-uuencode',
      '',
      body,
    ].join('\r\n'),
  )
  const [attachment = assert.fail('there is none')] = parseMail(raw).attachments
  return { raw, attachment }
}

for (const name of ['x-uuencode', 'X-UUEncode', 'uuencode', 'x-uue', 'uue'])
  test(`${name} is decoded`, () => assert.equal(transferEncoding(name), 'uuencode'))

test('encoded bytes decode again, with either line end and either sign for zero', () => {
  for (const size of [0, 1, 2, 3, 44, 45, 46, 10_000])
    for (const zero of ['`', ' '])
      for (const lineEnd of ['\n', '\r\n'])
        assert.deepEqual(
          decode(`remark\n${encode(bytes.subarray(0, size), zero, lineEnd)}more`),
          bytes.subarray(0, size),
        )
})

test('spaces lost at line ends count as zeros', () => {
  const content = Buffer.concat([bytes.subarray(0, 90), Buffer.alloc(45), bytes.subarray(90, 100)])
  assert.deepEqual(decode(encode(content, ' ').replace(/ +(?=\r\n)/g, '')), content)
})

test('a body without a begin stays unchanged, and one without an end is decoded to its end', () => {
  const { raw, attachment } = attach('#86)C\n')
  assert.deepEqual([attachment.sizeBytes, attachment.span.encoding], [6, 'none'])
  assert.equal(decodeSpan(raw, attachment.span).toString(), '#86)C\n')
  assert.equal(decode('begin 644 a\n#86)C').toString(), 'abc')
})

test('hostile 2: lines that promise more than they hold never exceed the body', () => {
  const body = `begin 644 a\n${'_\n'.repeat(100_000)}`
  assert.ok(decode(body).length <= body.length)
})

test('an attachment is shown with size and digest of its decoded bytes, and their position', () => {
  const { raw, attachment } = attach(encode(bytes))
  const { filename, sizeBytes, span } = attachment
  assert.deepEqual([filename, sizeBytes, span.encoding], ['file.bin', bytes.length, 'uuencode'])
  assert.equal(attachment.sha256, sha256(bytes))
  assert.deepEqual(decodeSpan(raw, span), bytes)
})

test('uuencoded text is read, a false label is shown raw, and a begin across pieces is found', () => {
  const text = (body: string) =>
    parseMail(Buffer.from(`Content-Transfer-Encoding: uuencode\r\n\r\n${body}`)).text
  assert.equal(text('begin 644 a\n#86)C\nend\n'), 'abc')
  assert.equal(text('no begin\n'), 'no begin\n')
  const { attachment } = attach(`${'remark\n'.repeat(20_000)}begin 644 a\n#86)C\nend\n`)
  assert.deepEqual([attachment.sizeBytes, attachment.sha256], [3, sha256(Buffer.from('abc'))])
})
