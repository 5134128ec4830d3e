// Tag lists: the syntax that RFC 6376 allows, and the errors that make a list invalid.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeFoldedBase64, parseTagList } from './tag-list.ts'

const lists: [string, Record<string, string> | null][] = [
  ['a=b', { a: 'b' }],
  ['a=b;', { a: 'b' }],
  [' a = b ; c\t=\r\n d ; \r\n ', { a: 'b', c: 'd' }],
  ['a=b c;d=', { a: 'b c', d: '' }],
  ['a=b=c', { a: 'b=c' }],
  ['a_1=\xc3\xa9', { a_1: '\xc3\xa9' }],
  ['A=1;a=2', { A: '1', a: '2' }],
  ['', null],
  [';', null],
  ['a=b;;', null],
  ['a=b;;c=d', null],
  ['a', null],
  ['=b', null],
  ['==', null],
  ['1a=b', null],
  ['a-b=c', null],
  ['a=b;a=c', null],
  ['a=\x00', null],
  ['a=b\r\nc', null],
  ['a=b\nc', null],
]

test('lists of tags are read, and malformed lists are refused', () => {
  for (const [text, wanted] of lists) {
    const tags = parseTagList(text)
    const found = tags && Object.fromEntries([...tags].map(([name, { value }]) => [name, value]))
    assert.deepEqual(found, wanted, JSON.stringify(text))
  }
})

test('a value’s span is all bytes between the equals sign and the semicolon', () => {
  const text = 'a=1; b = x\r\n y ;c=2'
  const { start, end } = parseTagList(text)!.get('b')!
  assert.equal(text.slice(start, end), ' x\r\n y ')
})

test('base64 may be folded, and may have no other characters', () => {
  assert.deepEqual(decodeFoldedBase64(' QU\r\n JD '), Buffer.from('ABC'))
  for (const text of ['', '=', 'QU-D', 'Q=UJD', 'QUJD===', 'QUJD.'])
    assert.equal(decodeFoldedBase64(text), null)
})
