// The reply reader, given replies of honest and hostile peers.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReplyReader, sanitize } from './reply-reader.ts'

function read(wire: string | Buffer) {
  const reader = new ReplyReader()
  const replies = reader.push(Buffer.from(wire as string))
  return { replies: replies.map(({ reply }) => reply), garbled: reader.garbled, empty: reader.isEmpty }
}

const good: [name: string, wire: string | Buffer, code: number, enhanced: string | null, text: string][] = [
  ['a plain line', '250 ok\r\n', 250, null, 'ok'],
  ['a code alone', '250\r\n', 250, null, ''],
  ['a bare LF', '250 ok\n', 250, null, 'ok'],
  ['a status', '550 5.1.1 no such user\r\n', 550, '5.1.1', 'no such user'],
  ['a status alone', '250 2.0.0\r\n', 250, '2.0.0', ''],
  ['a status of another class', '550 4.1.1 odd\r\n', 550, null, '4.1.1 odd'],
  ['a text that only begins like a status', '550 5.1.1.1 odd\r\n', 550, null, '5.1.1.1 odd'],
  ['several lines', '550-5.7.1 no,\r\n550 5.7.1 really no\r\n', 550, '5.7.1', 'no,\nreally no'],
  [
    'several lines, the status on the first',
    '550-5.7.1 no,\r\n550 really no\r\n',
    550,
    '5.7.1',
    'no,\nreally no',
  ],
  ['control characters', '250 a\x00\x1b[31mb\rc\x85\r\n', 250, null, 'a [31mb c '],
  ['broken UTF-8', Buffer.from('250 a\xff\xfeb\r\n', 'latin1'), 250, null, 'a??b'],
  ['UTF-8', '550 Benutzer unbekännt ✗\r\n', 550, null, 'Benutzer unbekännt ✗'],
  ['a long text', `550 ${'x'.repeat(3000)}\r\n`, 550, null, 'x'.repeat(1000)],
]

for (const [name, wire, code, enhanced, text] of good) {
  test(`a reply is read: ${name}`, () => {
    assert.deepEqual(read(wire), { replies: [{ code, enhanced, text }], garbled: null, empty: true })
  })
}

const bad: [name: string, wire: string | Buffer, reason: RegExp][] = [
  ['999', '999 what\r\n', /not a reply/],
  ['199', '199 what\r\n', /not a reply/],
  ['600', '600 what\r\n', /not a reply/],
  ['no code', 'hello\r\n', /not a reply/],
  ['an empty line', '\r\n', /not a reply/],
  ['HTTP', 'HTTP/1.1 400 Bad Request\r\n', /not a reply/],
  ['2xx without a space', '250ok\r\n', /without a space/],
  ['several codes', '250-yes\r\n550 no\r\n', /several codes/],
  ['binary', Buffer.from([0, 255, 254, 10]), /not a reply/],
  ['a line without end', `250 ${'x'.repeat(1 << 20)}`, /more than 4096/],
  ['a long line', `250 ${'x'.repeat(5000)}\r\n`, /more than 4096/],
  ['lines without end', '250-more\r\n'.repeat(200), /without end/],
  ['long lines', `250-${'x'.repeat(4000)}\r\n`.repeat(50), /without end/],
]

for (const [name, wire, reason] of bad) {
  test(`check 32: a lying reply is refused: ${name}`, () => {
    const { replies, garbled } = read(wire)
    assert.deepEqual(replies, [])
    assert.match(garbled ?? '', reason)
  })
}

test('check 32: replies before garbage are read, and none after it', () => {
  const { replies, garbled } = read('250 first\r\nnonsense\r\n250 second\r\n')
  assert.deepEqual(replies, [{ code: 250, enhanced: null, text: 'first' }])
  assert.match(garbled ?? '', /nonsense/)
})

test('a partial reply does not count as empty', () => {
  for (const part of ['2', '250 o', '250-a\r\n', '250-a\r\n250 ']) assert.equal(read(part).empty, false, part)
})

test('sanitizing cuts a text between characters', () => {
  assert.equal(sanitize('ab😀', 3), 'ab?')
  assert.equal(sanitize('a\u2028b', 10), 'a b')
})
