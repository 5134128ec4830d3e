// Classifies a failed statement: a bad row, a conflict, a torn page or a lost connection, and whether its outcome is unknown.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { DbFault } from './db.ts'

const kinds: [code: string | undefined, message: string, kind: DbFault['kind']][] = [
  ['ECONNREFUSED', 'connect ECONNREFUSED', 'lost'],
  ['EAI_AGAIN', 'getaddrinfo EAI_AGAIN postgres', 'lost'],
  ['ERR_STREAM_DESTROYED', 'Cannot call write after a stream was destroyed', 'lost'],
  ['57P01', 'terminating connection', 'lost'],
  ['53300', 'too many clients', 'lost'],
  [undefined, 'timeout exceeded when trying to connect', 'lost'],
  ['40P01', 'deadlock detected', 'conflict'],
  ['58030', 'could not read file: Input/output error', 'lost'],
  ['XX001', 'could not read blocks 0..0: read only 0 of 8192 bytes', 'damaged'],
  ['XX002', 'index contains unexpected zero page', 'damaged'],
  ['22P02', 'invalid input syntax', 'bad_row'],
  ['23505', 'duplicate key', 'bad_row'],
  ['42601', 'syntax error', 'other'],
  ['ERR_INVALID_ARG_TYPE', 'The argument must be of type string', 'other'],
  [undefined, 'something else', 'other'],
]

for (const [code, message, kind] of kinds)
  test(`a failure with ${code ?? 'no code'} and "${message}" is ${kind}`, () => {
    assert.equal(new DbFault(Object.assign(new Error(message), code && { code })).kind, kind)
  })

const broken = new Error('Connection terminated unexpectedly')
const answer = (code: string) => Object.assign(new pg.DatabaseError('an answer', 9, 'error'), { code })

const outcomes: [what: string, cause: Error, isSent: string, isUnknown: boolean][] = [
  ['a connection that breaks', broken, 'sent', true],
  ['a server that stops while a commit waits for a standby', answer('57P01'), 'sent', true],
  ['a connection that breaks behind PgBouncer', answer('08P01'), 'sent', true],
  ['a lock timeout', answer('55P03'), 'sent', false],
  ['a bad row', answer('22P02'), 'sent', false],
  ['a connection that breaks before it is used', broken, 'not sent', false],
]

for (const [what, cause, sent, isUnknown] of outcomes)
  test(`the outcome of a statement, ${sent}, is ${isUnknown ? 'unknown' : 'known'} after ${what}`, () => {
    assert.equal(new DbFault(cause, { wasSent: sent === 'sent' }).isUnknown, isUnknown)
  })
