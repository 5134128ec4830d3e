// The databases of tests: migrated, separate from each other, dropped afterwards. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Db } from '../../src/postgres/db.ts'
import { testDatabase } from './postgres.ts'
import type { Scope } from './until.ts'

test('test databases: two at once are migrated and do not see each other', async (t) => {
  const databases = await Promise.all([testDatabase(t), testDatabase(t)])
  const [one, two] = databases.map((connection) => new Db({ connection, maxConnections: 1 })) as [Db, Db]
  try {
    await one.query('create table only_here (n int)')
    const count = 'select count(*) n from information_schema.tables where table_name = $1'
    assert.deepEqual(await two.query(count, ['only_here']), [{ n: 0 }])
    assert.deepEqual(await two.query(count, ['schema_migration']), [{ n: 1 }])
  } finally {
    await Promise.all([one.close(), two.close()])
  }
})

test('test databases: one is gone when its scope has ended', async (t) => {
  const ends: (() => void | Promise<void>)[] = []
  const scope: Scope = { after: (end) => void ends.push(end) }
  // Keeps the server up while the other database is dropped.
  await testDatabase(t)
  const connection = await testDatabase(scope)
  for (const end of ends) await end()
  const db = new Db({ connection, maxConnections: 1 })
  await assert.rejects(db.query('select 1'), { sqlState: '3D000' })
  await db.close()
})
