// Strangers' text as it reaches a terminal.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inertJson, inertLine, inertText } from './inert-text.ts'

const cases: [what: string, text: string, inert: string][] = [
  ['words in any script', 'Grüße, 株式会社 👩‍💻', 'Grüße, 株式会社 👩‍💻'],
  ['an escape sequence', '\x1b]0;title\x07\x1b[2J', '␛]0;title␇␛[2J'],
  ['the same in one character', '\x9b2J', '\ufffd2J'],
  ['a line written over', 'harmless\rbad', 'harmless␍bad'],
  ['line ends of mail', 'one\r\ntwo\n\tthree', 'one\ntwo\n\tthree'],
  ['backspaces, DEL and NUL', 'a\bb\x7f\0', 'a␈b␡␀'],
  ['text turned around', 'invoice\u202efdp.exe', 'invoice\ufffdfdp.exe'],
]

for (const [what, text, inert] of cases)
  test(`a terminal gets inert text for ${what}`, () => assert.equal(inertText(text), inert))

test('a table cell prints as one line', () => assert.equal(inertLine('a\r\nb\tc\u2028d'), 'a␊b␉c\ufffdd'))

test('a JSON document prints as plain text, and parses to the original value', () => {
  const value = { subject: '\x1b[31m\x7f\x9b\u202e\u2028', list: ['ä\n'] }
  const text = inertJson(value)
  assert.doesNotMatch(text, /[^\x20-\x7eä\n]/)
  assert.deepEqual(JSON.parse(text), value)
})
