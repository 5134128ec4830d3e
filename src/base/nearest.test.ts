// Which word was meant.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearest } from './nearest.ts'

const known = ['POSTHORN_HTTP', 'POSTHORN_HTTPS', 'POSTHORN_SMTP', 'POSTHORN_RETENTION', 'POSTHORN_DATA_DIR']

for (const [given, meant] of [
  ['POSTHORN_HTPP', 'POSTHORN_HTTP'],
  ['POSTHORN_HTTTPS', 'POSTHORN_HTTPS'],
  ['POSTHORN_STMP', 'POSTHORN_SMTP'],
  ['POSTHORN_DATADIR', 'POSTHORN_DATA_DIR'],
  ['POSTHORN_DATA', 'POSTHORN_DATA_DIR'],
  ['POSTHORN_RETENTON', 'POSTHORN_RETENTION'],
  ['POSTHORN_COLOUR', null],
  ['', null],
] as const)
  test(`${given || 'nothing'} is near ${meant}`, () => assert.equal(nearest(given, known), meant))

test('the first of two that are as near', () => assert.equal(nearest('ac', ['ab', 'ad']), 'ab'))
