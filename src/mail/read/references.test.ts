// Tests message identifiers as mailers write them, including obsolete forms.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { messageIds } from './references.ts'

const fields: [field: string, ids: string[]][] = [
  ['<1@a.example>', ['<1@a.example>']],
  ['<1@a.example><2@a.example>,\t<3@a.example>', ['<1@a.example>', '<2@a.example>', '<3@a.example>']],
  ['Your message of Monday <1@a.example>', ['<1@a.example>']],
  ['1@a.example', ['<1@a.example>']],
  ['<>', []],
  ['< 1 @ a . example >', ['<1@a.example>']],
  ['<1(one)@a(host (of A)).example>', ['<1@a.example>']],
  ['<"1(one)"@a.example>', ['<"1(one)"@a.example>']],
  ['<1(one@a.example>', ['<1(one@a.example>']],
  ['<(one)>', ['<(one)>']],
]

for (const [field, ids] of fields)
  test(`message identifiers are read from ${field}`, () => assert.deepEqual(messageIds(field, 100), ids))

test('the last identifiers are kept if there are too many', () => {
  assert.deepEqual(messageIds('<1@a><2@a><3@a>', 2), ['<2@a>', '<3@a>'])
  assert.deepEqual(messageIds('<1@a>', 0), [])
})
