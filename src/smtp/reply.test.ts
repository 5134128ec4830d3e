// Tests of reply.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatReply, reply } from './reply.ts'

const cases: [string, Parameters<typeof reply>, string][] = [
  ['one line', [250, '2.0.0', 'OK'], '250 2.0.0 OK\r\n'],
  ['without a status', [354, null, 'Go on'], '354 Go on\r\n'],
  ['several lines', [550, '5.7.1', 'No\nNever'], '550-5.7.1 No\r\n550 5.7.1 Never\r\n'],
  ['empty text', [250, null, ''], '250 \r\n'],
  ['control bytes', [550, '5.1.1', 'a\rb\0c\x7fd\x1be'], '550 5.1.1 a?b?c?d?e\r\n'],
  ['beyond ASCII', [550, '5.1.1', 'ü\u202e'], '550 5.1.1 ??\r\n'],
]

for (const [name, parts, wire] of cases) {
  test(`check 27: a reply is written: ${name}`, () => assert.equal(formatReply(reply(...parts)), wire))
}

test('check 27: a long text is cut to 512 octets a line and 100 lines', () => {
  const wire = formatReply(reply(550, '5.0.0', `${'x'.repeat(10_000)}\n`.repeat(1000)))
  const lines = wire.split('\r\n')
  assert.equal(lines.length, 101)
  assert.ok(lines.every((line) => line.length <= 510))
  assert.match(lines[99]!, /^550 /)
})
