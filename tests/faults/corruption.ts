// PostgreSQL's own check of a whole database, and sessions of a test.
import assert from 'node:assert/strict'
import pg from 'pg'

export async function openSession(config: pg.ClientConfig): Promise<pg.Client> {
  const client = new pg.Client(config)
  client.on('error', () => {}) // the query fails with it too
  await client.connect()
  return client
}

export async function asPostgres<Row>(config: pg.ClientConfig, sql: string): Promise<Row[]> {
  const client = await openSession(config)
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end().catch(() => {})
  }
}

/** The faults that PostgreSQL's own check of every table and index finds. */
export async function findCorruption(config: pg.ClientConfig): Promise<unknown[]> {
  await asPostgres(config, 'create extension if not exists amcheck')
  const indexes = await asPostgres(
    config,
    `select bt_index_check(indexrelid, heapallindexed => true) from pg_index join pg_class c on c.oid = indexrelid
    join pg_am a on a.oid = c.relam where a.amname = 'btree' and indisvalid and c.relpersistence = 'p'`,
  )
  assert.ok(indexes.length > 100)
  return await asPostgres(
    config,
    `select c.relname, v.* from pg_class c, verify_heapam(c.oid) v where c.relkind in ('r', 't') and c.relpersistence = 'p'`,
  )
}
