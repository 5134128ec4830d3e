// Which texts are valid names.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readDisplayName, readName } from './name.ts'

const cases: [what: string, given: string, name: string | null][] = [
  ['a word', 'Acme', 'Acme'],
  ['white space around it', ' \tAcme Ltd \n', 'Acme Ltd'],
  ['other scripts', 'Müller & 株式会社 👩‍💻', 'Müller & 株式会社 👩‍💻'],
  ['200 characters of two code units each', '😀'.repeat(200), '😀'.repeat(200)],
  ['201 characters', 'a'.repeat(201), null],
  ['nothing', '', null],
  ['white space', ' \u00a0\u3000', null],
  ['invisible characters', '\u200b\u202e', null],
  ['a script from right to left', 'שירה & أحمد\u200f', 'שירה & أحمد\u200f'],
  ['an override of direction', 'Acme\u202egpj.exe', null],
  ['an isolate', 'Acme\u2067moc', null],
  ['an escape sequence', 'Ac\u001b[31mme', null],
  ['the same in one character', 'Ac\u009b31mme', null],
  ['a line end within', 'Ac\nme', null],
  ['a tab within', 'Ac\tme', null],
  ['DEL', 'Acme\u007f', null],
]

for (const [what, given, name] of cases)
  test(`a reader takes ${what} ${name === null ? 'for no name' : 'as a name'}`, () =>
    assert.equal(readName(given), name))

test('an inbox’s name may change the direction of text, and must obey the other rules', () => {
  assert.equal(readDisplayName(' Acme\u202egpj '), 'Acme\u202egpj')
  assert.equal(readDisplayName('Ac\nme'), null)
})
