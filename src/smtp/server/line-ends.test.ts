// Tests of line-ends.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LineEnds } from './line-ends.ts'

const cases: [string[], boolean][] = [
  [['a\r\nb\r\n'], false],
  [['a\r', '\nb'], false],
  [['a\r', '', '\nb'], false],
  [[''], false],
  [['a\n'], true],
  [['\n'], true],
  [['a\rb'], true],
  [['a\r', 'b'], true],
  [['a\r'], true],
  [['a\r\r\n'], true],
  [['a\0'], true],
  [['a\r\0'], true],
]

for (const [chunks, broken] of cases) {
  test(`check 20: ${JSON.stringify(chunks)} is ${broken ? 'broken' : 'clean'}`, () => {
    const lineEnds = new LineEnds()
    for (const chunk of chunks) lineEnds.check(Buffer.from(chunk))
    lineEnds.end()
    assert.equal(lineEnds.broken, broken)
  })
}
