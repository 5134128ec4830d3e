// Which word was probably meant.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearest } from './nearest.ts'

const known = ['HTTP', 'HTTPS', 'SMTP', 'DNS', 'RETENTION', 'DATA_DIR']

for (const [given, meant] of [
  ['HTPP', 'HTTP'],
  ['HTTTPS', 'HTTPS'],
  ['STMP', 'SMTP'],
  ['DATADIR', 'DATA_DIR'],
  ['DATA', 'DATA_DIR'],
  ['RETENTON', 'RETENTION'],
  ['TETENTOIN', 'RETENTION'],
  // As many typing errors as there are letters, or half as many.
  ['FOO', null],
  ['HOST', null],
  ['COLOUR', null],
  ['', null],
] as const)
  test(`a suggestion for ${given || 'an empty name'} is ${meant}`, () =>
    assert.equal(nearest(given, known), meant))

test('the first of two equally near names is suggested', () =>
  assert.equal(nearest('abe', ['abc', 'abd']), 'abc'))
