// Tests header blocks as SMTP receives them: counted, folded, damaged, endless.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { scanHeader } from './header-scan.ts'
import { messageIds } from './references.ts'

test('check 23: the scan counts Received and returns each Delivered-To', () => {
  const raw = `${'Received: from a by b\r\n\twith ESMTP\r\n'.repeat(51)}DELIVERED-TO: One@a.example\r\ndelivered-to : two@a.example\r\n\r\nReceived: no\r\n`
  const header = scanHeader(Buffer.from(raw))
  assert.equal(header.count('received'), 51)
  assert.deepEqual(header.values('Delivered-To'), ['One@a.example', 'two@a.example'])
  assert.equal(raw.slice(header.headerEnd), 'Received: no\r\n')
})

test('check 2: only an empty line ends the header; lines end with LF, CR or not', () => {
  const blocks = [
    'A: b\n\nbody',
    'A: b\r\n\r\nbody',
    'junk\r\nA: b\n\nbody',
    'A: b\n\r\nbody',
    'A:\r\n b\r\n\r\nbody',
  ]
  for (const block of blocks) {
    const header = scanHeader(Buffer.from(block))
    assert.equal(block.slice(header.headerEnd), 'body', JSON.stringify(block))
    assert.deepEqual(header.values('a'), ['b'])
  }
  assert.equal(scanHeader(Buffer.from('A: b\rC: d')).first('a'), 'b\rC: d')
  assert.equal(scanHeader(Buffer.from('\r\nbody')).headerEnd, 2)
  assert.equal(scanHeader(Buffer.alloc(0)).headerEnd, 0)
})

test('check 59: the scan skips a million fields, and one field of 10 MB', () => {
  for (const block of ['X-A: b\r\n'.repeat(1_000_000), `X-A: ${'b'.repeat(10 << 20)}\r\nC: d\r\n`]) {
    const header = scanHeader(Buffer.from(`${block}\r\nbody`))
    assert.ok(header.isTruncated)
    assert.equal(header.headerEnd, block.length + 2)
    assert.equal(header.count('c'), 0)
  }
})

const identifiers: [field: string, ids: string[]][] = [
  ['<a@b> <c@d>', ['<a@b>', '<c@d>']],
  ['text <a@b>,<c@d> "more"', ['<a@b>', '<c@d>']],
  ['<a\t@ b>', ['<a@b>']],
  ['<<<a@b>>>', ['<a@b>']],
  ['<> <', []],
  ['a@b', ['<a@b>']],
  ['\ta@b  c@d ', ['<a@b>', '<c@d>']],
  ['Your message of Monday to a@b', []],
  ['"a@b"', []],
  ['<a@b', []],
  [`<${'a'.repeat(1000)}>`, []],
]

for (const [field, ids] of identifiers) {
  test(`the scan returns the identifiers of ${field.slice(0, 30)}`, () =>
    assert.deepEqual(messageIds(field, 10), ids))
}

test('the last identifiers are kept', () => {
  assert.deepEqual(messageIds('<1> <2> <3>', 2), ['<2>', '<3>'])
  assert.deepEqual(messageIds('<1>', 0), [])
})
