// Database functions: replaced when their file changes; nodes of the former release keep theirs. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { silentLog } from '../../src/base/log.ts'
import { Db } from '../../src/postgres/db.ts'
import { readFunctions } from '../../src/postgres/functions.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { testDatabase } from '../support/postgres.ts'

const db = new Db({ connection: await testDatabase({ after }) })
after(() => db.close())

const bodyOf = async (name: string) =>
  (await db.query<{ body: string }>('select prosrc as body from pg_proc where proname = $1', [name])).map(
    ({ body }) => body,
  )

const changed = `create or replace function hour_of(at timestamptz) returns timestamptz language sql immutable as 'select at'`

test('each file makes one function of its own name, and the database has no other', async () => {
  const rows = await db.query<{ name: string }>('select name from schema_function order by name')
  assert.deepEqual(
    rows.map(({ name }) => name),
    readFunctions().map(({ name }) => name),
  )
  const others = await db.query(
    `select p.proname from pg_proc p where p.pronamespace = current_schema()::regnamespace
      and p.oid::regprocedure::text not in (select signature from schema_function)`,
  )
  assert.deepEqual(others, [])
})

test('one of several starting nodes replaces a function whose file has changed', async () => {
  const before = await bodyOf('hour_of')
  await db.query(changed)
  await db.query(`update schema_function set checksum = 'of another text' where name = 'hour_of'`)
  await Promise.all([migrate(db, silentLog), migrate(db, silentLog)])
  assert.deepEqual(await bodyOf('hour_of'), before)
})

test('a form without a file stays for this release, and is dropped by the next', async () => {
  await db.query(`create function hour_of(at date) returns date language sql immutable as 'select at'`)
  await db.query(`insert into schema_function values ('hour_of(date)', 'former', 'c', '0.0.9', null)`)
  await migrate(db, silentLog)
  assert.equal((await bodyOf('hour_of')).length, 2)
  await db.query(`update schema_function set retired_by = '0.0.9' where signature = 'hour_of(date)'`)
  await migrate(db, silentLog)
  assert.equal((await bodyOf('hour_of')).length, 1)
})

test('a form with new arguments coexists with the one that the previous release calls', async () => {
  await db.query(`create function is_running(started_at date) returns boolean language sql as 'select true'`)
  await db.query('drop function is_running(timestamptz, timestamptz)')
  await db.query(
    `update schema_function set signature = 'is_running(date)', checksum = 'of other arguments' where name = 'is_running'`,
  )
  await migrate(db, silentLog)
  const rows = await db.query<{ signature: string; isFormer: boolean }>(
    `select signature, retired_by is not null as "isFormer" from schema_function where name = 'is_running' order by signature`,
  )
  assert.deepEqual(rows, [
    { signature: 'is_running(date)', isFormer: true },
    { signature: 'is_running(timestamp with time zone,timestamp with time zone)', isFormer: false },
  ])
  assert.equal((await bodyOf('is_running')).length, 2)
})

test('a program older than the last one replaces nothing', async () => {
  await db.query(changed)
  await db.query(`update schema_function set checksum = 'newer', version = '999.0.0' where name = 'hour_of'`)
  await migrate(db, silentLog)
  assert.deepEqual(await bodyOf('hour_of'), ['select at'])
})
