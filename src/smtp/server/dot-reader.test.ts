// Tests of dot-reader.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DotReader } from './dot-reader.ts'

const cases: [string, { content: string; rest: string; broken?: true } | null][] = [
  ['.\r\n', { content: '', rest: '' }],
  ['a\r\n.\r\nQUIT', { content: 'a\r\n', rest: 'QUIT' }],
  ['..\r\n.\r\n', { content: '.\r\n', rest: '' }],
  ['...a\r\n..b\r\n.c\r\n.\r\n', { content: '..a\r\n.b\r\nc\r\n', rest: '' }],
  ['a.\r\n.\r\n', { content: 'a.\r\n', rest: '' }],
  ['\r\n.\r\n.\r\n', { content: '\r\n', rest: '.\r\n' }],
  ['a\n.\r\n\r\n.\r\n', { content: 'a\n.\r\n\r\n', rest: '', broken: true }],
  ['a\r\r\n.\r\n', { content: 'a\r\r\n', rest: '', broken: true }],
  ['\0\r\n.\r\n', { content: '\0\r\n', rest: '', broken: true }],
  ['a\r\n.\n', null],
  ['a\r\n.\r', null],
  ['a\r\n.\r\r\n', null],
  ['a.\r\n', null],
]

for (const [wire, want] of cases) {
  for (const sizeBytes of [1, 2, 3, 100]) {
    test(`check 1: ${JSON.stringify(wire)} is read the same in pieces of ${sizeBytes}`, () => {
      const reader = new DotReader()
      let content = ''
      let at = 0
      let ended = false
      while (!ended && at < wire.length) {
        const part = reader.read(Buffer.from(wire.slice(at, at + sizeBytes)))
        content += part.content.toString()
        at += part.next
        ended = part.isOver
      }
      if (want === null) return assert.equal(ended, false)
      assert.deepEqual([ended, reader.isBroken, wire.slice(at)], [true, want.broken ?? false, want.rest])
      if (!want.broken) assert.equal(content, want.content)
    })
  }
}
