// Passes the values of a statement by name.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Arguments } from './arguments.ts'

test('named values are passed in whatever order the statement uses them', () => {
  const named = new Arguments({ at: 1, id: 'x', subject: 'Hello' })
  assert.deepEqual(named.values, [1, 'x', 'Hello'])
  assert.equal(named.of(), 'at => $1, id => $2, subject => $3')
  assert.equal(named.of('subject at'), 'subject => $3, at => $1')
  assert.equal(named.assigned('subject'), 'subject = $3')
  assert.equal(named.insertInto('note'), 'insert into note (at, id, subject) values ($1, $2, $3)')
})

test('a statement that lacks a value is refused before it is sent', () => {
  assert.throws(() => new Arguments({ at: 1 }).of('at id'), /no value that is called id/)
})
