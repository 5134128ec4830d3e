// Messages as bytes for DATA: dots doubled, ends completed, unchanged bytes not copied.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dotStuffed, hasEightBit } from './message.ts'

const cases: [message: string, stuffed: string][] = [
  ['', ''],
  ['a\r\n', 'a\r\n'],
  ['a', 'a\r\n'],
  ['.', '..\r\n'],
  ['.\r\n', '..\r\n'],
  ['.a\r\n.b\r\n', '..a\r\n..b\r\n'],
  ['a\r\n.\r\nb\r\n', 'a\r\n..\r\nb\r\n'],
  ['a\r\n..\r\n.', 'a\r\n...\r\n..\r\n'],
  ['a.b\r\n .c\r\n', 'a.b\r\n .c\r\n'],
  ['\r\n.\r\n.\r\n', '\r\n..\r\n..\r\n'],
]

for (const [message, stuffed] of cases) {
  test(`check 42: dots are doubled in ${JSON.stringify(message)}`, () => {
    assert.equal(dotStuffed(Buffer.from(message)).toString(), stuffed)
  })
}

test('a message without dots is not copied', () => {
  const message = Buffer.from('Subject: x\r\n\r\nbody\r\n')
  assert.equal(dotStuffed(message), message)
})

test('100,000 dots are doubled in linear time', () => {
  const message = Buffer.from('.\r\n'.repeat(100_000))
  assert.equal(dotStuffed(message).length, 400_000)
})

test('8-bit content is detected', () => {
  assert.equal(hasEightBit(Buffer.from('plain\r\n')), false)
  assert.equal(hasEightBit(Buffer.from('grüß\r\n')), true)
})
