// Tests the transcript reader that judges the fuzzed server: what it finds in correct and in faulty conversations.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readTranscript } from './transcript.ts'

function read(sent: string, received: string, { isCut = false, proxyBytes = 0 } = {}) {
  const phase = { sent: Buffer.from(sent, 'latin1'), received: Buffer.from(received, 'latin1') }
  return readTranscript({ phases: [phase], proxyBytes, isCut })
}

const envelope = 'EHLO a\r\nMAIL FROM:<>\r\nRCPT TO:<b@c>\r\n'
const greeted = '220 a\r\n250-a\r\n250 B\r\n250 ok\r\n250 ok\r\n'

const found: [name: string, sent: string, received: string, contents: string[]][] = [
  [
    'DATA',
    `${envelope}DATA\r\n..a\r\n.b\r\n.\r\nQUIT\r\n`,
    `${greeted}354 \r\n250 ok\r\n221 \r\n`,
    ['.a\r\nb\r\n'],
  ],
  ['nothing at all', `${envelope}DATA\r\n.\r\n`, `${greeted}354 \r\n250 ok\r\n`, ['']],
  ['two chunks', `${envelope}BDAT 2\r\n.\nBDAT 1 LAST\r\nx`, `${greeted}250 \r\n250 \r\n`, ['.\nx']],
  [
    'a chunk that came too early',
    `MAIL FROM:<>\r\nBDAT 1 LAST\r\nxRCPT TO:<b@c>\r\nBDAT 1 LAST\r\ny`,
    '220 a\r\n250 ok\r\n503 no\r\n250 ok\r\n250 ok\r\n',
    ['y'],
  ],
  ['a message that is refused', `${envelope}DATA\r\na\r\n.\r\n`, `${greeted}354 \r\n550 no\r\n`, []],
  ['DATA refused: its lines are commands', `DATA\r\na\r\n.\r\n`, '220 a\r\n503 \r\n500 \r\n500 \r\n', []],
  ['hung up', `${envelope}GET /\r\nNOOP\r\n`, `${greeted}500 no\r\n`, []],
]

for (const [name, sent, received, contents] of found)
  test(`a transcript yields its messages: ${name}`, () => {
    const { taken, fault } = read(sent, received)
    assert.equal(fault, null)
    assert.deepEqual(
      taken.map(({ content }) => content.toString('latin1')),
      contents,
    )
  })

const faults: [fault: RegExp, sent: string, received: string][] = [
  [/no reply to "NOOP/, 'NOOP\r\n', '220 a\r\n'],
  [/no greeting/, 'NOOP\r\n', ''],
  [/to nothing/, 'NOOP\r\n', '220 a\r\n250 ok\r\n250 ok\r\n'],
  [/for nobody/, 'MAIL FROM:<>\r\nDATA\r\n.\r\n', '220 a\r\n250 \r\n354 \r\n250 ok\r\n'],
  [/no reply line/, 'NOOP\r\n', '220 a\r\n250 ok\n'],
  [/no reply line/, 'NOOP\r\n', '220 a\r\n250 \xe9\r\n'],
  [/no code/, 'NOOP\r\n', '220 a\r\n299 ok\r\n'],
  [/two codes/, 'NOOP\r\n', '220 a\r\n250-ok\r\n550 ok\r\n'],
  [/without its end/, 'NOOP\r\n', '220 a\r\n250-ok\r\n'],
  [/without its end/, 'NOOP\r\n', '220 a\r\n250 o'],
  [/of 600 bytes/, '', `220 ${'a'.repeat(594)}\r\n`],
]

for (const [fault, sent, received] of faults)
  test(`a transcript reports its fault: ${fault}`, () =>
    assert.match(read(sent, received).fault ?? '', fault))

test('an interrupted client may lack replies, and a proxy header does not count as a command', () => {
  assert.equal(read('NOOP\r\nNOOP\r\n', '220 a\r\n25', { isCut: true }).fault, null)
  const proxied = read('PROXY UNKNOWN\r\nNOOP\r\n', '220 a\r\n250 ok\r\n', { proxyBytes: 15 })
  assert.deepEqual([proxied.fault, proxied.answered], [null, 1])
})
