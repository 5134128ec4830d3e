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
    const lineEnds = new LineEnds('message')
    for (const chunk of chunks) lineEnds.check(Buffer.from(chunk))
    lineEnds.end()
    assert.equal(lineEnds.isBroken, broken)
  })
}

const binary: [string[], boolean][] = [
  [['a: b\r\n\r\nx\ny\rz\0\r'], false],
  [['a: b\r\n', '\r\n', '\n\r\0'], false],
  [['a: b\r', '\n\r', '\n\0'], false],
  [['a: b\r\n\r', '\n', '\0'], false],
  [['\r\n\0'], false],
  [['\r', '\n\0'], false],
  [['', '\r\n', '', '\n'], false],
  [['a: b\n\r\n\r\n'], true],
  [['a: b\r\n\n', 'x'], true],
  [['a: b\0\r\n\r\n'], true],
  [['a: b\r', '\r\n\r\n'], true],
  [['a: b\r\n\r'], true],
  [['a: b\r\n\r', 'x'], true],
  [['no empty line\r\n', 'x\r\n'], false],
  [['no empty line\r\n', 'x\n'], true],
  [['\n\0'], true],
]

for (const [chunks, broken] of binary) {
  test(`check 22: the header of the binary message ${JSON.stringify(chunks)} is ${broken ? 'broken' : 'clean'}`, () => {
    const lineEnds = new LineEnds('header')
    for (const chunk of chunks) lineEnds.check(Buffer.from(chunk))
    lineEnds.end()
    assert.equal(lineEnds.isBroken, broken)
  })
}
