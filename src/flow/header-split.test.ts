// A message is split at its first empty line, however its bytes are chunked.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { HeaderSplit } from './header-split.ts'

function split(chunks: Buffer[]) {
  const found = { header: null as string | null, body: '' }
  let given = 0
  const splitter = new HeaderSplit({
    header: (bytes) => {
      assert.equal(++given, 1, 'it is given once')
      found.header = bytes?.toString('latin1') ?? null
    },
    body: (chunk) => void (found.body += chunk.toString('latin1')),
  })
  for (const chunk of chunks) splitter.write(chunk)
  splitter.end()
  assert.equal(given, 1)
  return found
}

const cases: [text: string, header: string, body: string][] = [
  ['From: a\r\nTo: b\r\n\r\nbody\r\n', 'From: a\r\nTo: b\r\n', 'body\r\n'],
  ['From: a\r\n\r\n', 'From: a\r\n', ''],
  ['\r\nbody\r\n', '', 'body\r\n'],
  ['From: a\r\n', 'From: a\r\n', ''],
  ['', '', ''],
  ['A: b\r\n\r\n\r\n\r\nbody', 'A: b\r\n', '\r\n\r\nbody'],
  ['A: b\r\n \r\n\r\nbody', 'A: b\r\n \r\n', 'body'],
]

for (const [text, header, body] of cases)
  test(`a message is split into header and body: ${JSON.stringify(text)}`, () => {
    assert.deepEqual(split([Buffer.from(text)]), { header, body })
  })

test('header and body are the same for any chunks of bytes', () => {
  const pieces = fc.array(fc.constantFrom('\r\n', '\r', '\n', 'A: b', ' c', 'text'), { maxLength: 30 })
  fc.assert(
    fc.property(pieces, fc.array(fc.nat(5), { maxLength: 60 }), (parts, sizes) => {
      const bytes = Buffer.from(parts.join(''))
      const chunks: Buffer[] = []
      let at = 0
      for (const size of sizes) chunks.push(bytes.subarray(at, (at += size)))
      chunks.push(bytes.subarray(at))
      const whole = split([bytes])
      assert.deepEqual(split(chunks), whole)
      const line = whole.header === '' || bytes.length === whole.header!.length ? '' : '\r\n'
      if (whole.header !== '') assert.equal(`${whole.header}${line}${whole.body}`, bytes.toString())
    }),
  )
})

test('a header that is too long yields neither header nor body', () => {
  const line = Buffer.from(`X: ${'x'.repeat(995)}\r\n`)
  const long = Array.from({ length: 400 }, () => line)
  assert.deepEqual(split([...long, Buffer.from('\r\nbody')]), { header: null, body: '' })
  assert.deepEqual(split([Buffer.concat([...long, Buffer.from('\r\nbody')])]), { header: null, body: '' })
})
