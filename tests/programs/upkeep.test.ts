// The doctor's checks of PostgreSQL's upkeep find real faults of a server, as a role without rights. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pg from 'pg'
import { Clock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import type { Check } from '../../src/cli/doctor/checks.ts'
import {
  checkUpkeep,
  evaluateIds,
  evaluateSpace,
  evaluateTransactions,
  evaluateVacuum,
  evaluateWal,
} from '../../src/cli/doctor/upkeep.ts'
import { OperatorMetrics } from '../../src/operator/metrics.ts'
import { Db } from '../../src/postgres/db.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import {
  type DatabaseHealth,
  estimateUnusedSpace,
  readDatabaseHealth,
  readWalBytes,
} from '../../src/store/database-health.ts'
import { ExternalServer } from '../support/external-server.ts'
import { until } from '../support/until.ts'

const server = await ExternalServer.make({ after })
let connectionString = ''
let db: Db

/** Connects as the service's role. */
async function connect(...settings: string[]): Promise<void> {
  const url = new URL(await server.start('max_wal_size=32MB', 'max_prepared_transactions=2', ...settings))
  url.username = 'plain'
  url.pathname = '/service'
  connectionString = url.href
  db = new Db({ connection: { connectionString }, maxConnections: 2 })
}

await server.start()
await server.ask('create role plain login')
await server.ask('create database service owner plain')
await connect()
await migrate(db!, silentLog)
after(() => db.close())

const find = (checks: Check[], name: string) => checks.find((check) => check.name === name)!
const checked = async (name: string) => find(await checkUpkeep(db), name)

/** The facts, as if `seconds` had passed. */
async function healthAfter(seconds: number): Promise<DatabaseHealth> {
  const health = await readDatabaseHealth(db)
  return {
    ...health,
    tables: health.tables.map((table) => ({
      ...table,
      secondsSinceVacuum: table.secondsSinceVacuum + seconds,
    })),
    transactions: health.transactions.map((one) => ({ ...one, seconds: one.seconds + seconds })),
  }
}

test('a new database passes every check, as a role without rights', async () => {
  const [role] = await db.query<{ super: boolean; monitor: boolean }>(
    `select rolsuper as super, pg_has_role(current_user, 'pg_monitor', 'member') as monitor
    from pg_roles where rolname = current_user`,
  )
  assert.deepEqual(role, { super: false, monitor: false })
  const checks = await checkUpkeep(db)
  assert.deepEqual(
    checks.map(({ name, status }) => [name, status]),
    ['vacuum', 'unused space', 'transaction ids', 'sequences', 'WAL', 'transactions'].map((name) => [
      name,
      'ok',
    ]),
  )
})

test('dead rows: autovacuum that is off for a table, and a table that waits for it', async () => {
  await db.query(
    'alter table metric_delta set (autovacuum_enabled = false, autovacuum_vacuum_threshold = 4000)',
  )
  await db.query(
    `insert into metric_delta (organization_id, at, counts)
    select gen_random_uuid(), now(), '{}' from generate_series(1, 13000)`,
  )
  await db.query('delete from metric_delta where id <= 12500')
  const deltas = await until('the statistics', async () => {
    const { tables } = await readDatabaseHealth(db)
    return tables.find(({ name, deadRows }) => name === 'metric_delta' && deadRows === 12_500) ?? null
  })
  assert.deepEqual([deltas.threshold, deltas.isAutovacuumOn], [4000, false])
  const off = await checked('vacuum')
  assert.deepEqual(
    [off.status, off.detail, off.mend],
    [
      'warning',
      'autovacuum is off for metric_delta',
      'alter table metric_delta reset (autovacuum_enabled, toast.autovacuum_enabled), and so on for each',
    ],
  )
  // Its round comes once a minute.
  await db.query('alter table metric_delta reset (autovacuum_enabled)')
  const late = evaluateVacuum(await healthAfter(700))
  assert.equal(late.status, 'warning')
  assert.match(late.detail, /^metric_delta has 12,500 dead rows, and no vacuum ended for 1[12] min$/)
  assert.match(late.mend!, /^run vacuum metric_delta; if it recurs, lower autovacuum_naptime/)
  assert.equal(evaluateVacuum(await healthAfter(0)).status, 'ok')
  await db.query('vacuum metric_delta')
  assert.equal(evaluateVacuum(await healthAfter(700)).status, 'ok')
})

test('unused space: the estimate is within a tenth, with long values outside of the rows', async () => {
  await db.query(
    `insert into raw (id, size_bytes, bytes, created_at)
    select gen_random_uuid(), case when i % 4 = 0 then 20000 else 3000 end,
      decode(repeat('ab', case when i % 4 = 0 then 20000 else 3000 end), 'hex'), now()
    from generate_series(1, 4000) i`,
  )
  const estimate = async () => {
    const [raw] = (await estimateUnusedSpace(db, 1 << 20)).filter(({ name }) => name === 'raw')
    return raw!
  }
  const full = await estimate()
  // Two rows of 3,000 bytes fill a page to 73 %.
  assert.ok(full.unusedBytes < 0.25 * full.sizeBytes, JSON.stringify(full))
  await db.query(`delete from raw where get_byte(decode(md5(id::text), 'hex'), 0) < 205`)
  const long = await until('the statistics', async () => {
    const { tables } = await readDatabaseHealth(db)
    return tables.find(({ name }) => name === 'raw (TOAST)') ?? null
  })
  const [toast] = await db.query<{ rows: number }>(
    `select greatest(t.reltuples, 0)::float8 as rows from pg_class c join pg_class t on t.oid = c.reltoastrelid
    where c.relname = 'raw'`,
  )
  // The migrations lower the share of dead rows at which autovacuum starts, and a TOAST table follows its table.
  assert.equal(long.threshold, 1000 + 0.02 * toast!.rows)
  await db.query('alter table raw set (toast.autovacuum_enabled = false)')
  const off = await checked('vacuum')
  assert.equal(off.detail, 'autovacuum is off for raw (TOAST)')
  await db.query(off.mend!.split(', and so on')[0]!)
  assert.equal((await checked('vacuum')).status, 'ok')
  await db.query('vacuum raw')
  const loose = await estimate()
  const share = loose.unusedBytes / loose.sizeBytes
  assert.ok(share > 0.75 && share < 0.9, JSON.stringify(loose))
  const gigabytes = { ...loose, sizeBytes: loose.sizeBytes * 1000, unusedBytes: loose.unusedBytes * 1000 }
  const check = evaluateSpace([gigabytes])
  assert.equal(check.status, 'warning')
  assert.match(check.detail, /^raw: about [\d.]+ GiB of [\d.]+ GiB$/)
  assert.equal(evaluateSpace([loose]).status, 'ok')
})

test('transaction ids: the age of the oldest database, and when it is too old', async () => {
  const health = await readDatabaseHealth(db)
  const [transaction, multixact] = health.ids
  assert.deepEqual(
    [transaction!.kind, transaction!.maxAge, multixact!.kind, multixact!.maxAge],
    ['transaction', 200_000_000, 'multixact', 400_000_000],
  )
  assert.ok(transaction!.age > 0)
  const agedTo = (age: number) => evaluateIds({ ...health, ids: [{ ...transaction!, age }, multixact!] })
  assert.equal(agedTo(250_000_000).status, 'ok')
  assert.equal(agedTo(350_000_000).status, 'warning')
  const { status, detail, mend } = agedTo(1_700_000_000)
  assert.equal(status, 'failed')
  assert.match(detail, /1,700,000,000 \(79 % of the range\) in the database/)
  assert.match(mend!, /vacuum \(freeze\)/)
})

test('a sequence near its end', async () => {
  await db.query('alter sequence node_id maxvalue 1000')
  for (const [value, status] of [
    [400, 'ok'],
    [600, 'warning'],
    [950, 'failed'],
  ] as const) {
    await db.query(`select setval('node_id', ${value})`)
    const check = await checked('sequences')
    assert.equal(check.status, status)
    assert.match(check.detail, /^\d\d % of node_id is used/)
  }
  await db.query('alter sequence node_id no maxvalue')
})

test('transactions: one that writes, one that reads, a prepared one, and those of other roles', async (t) => {
  const client = new pg.Client({ connectionString })
  await client.connect()
  t.after(() => client.end())
  await client.query('begin isolation level repeatable read')
  await client.query('select count(*) from node')
  assert.equal(evaluateTransactions(await healthAfter(0)).status, 'ok')
  assert.equal(evaluateTransactions(await healthAfter(1000)).status, 'ok')
  const reading = evaluateTransactions(await healthAfter(7200))
  assert.equal(reading.status, 'warning')
  assert.match(
    reading.detail,
    /^process \d+, idle in transaction, of plain in service is open for 2 h: vacuum removes no row that was deleted since$/,
  )
  await client.query('select pg_current_xact_id()')
  const writing = evaluateTransactions(await healthAfter(1000))
  assert.match(writing.detail, /is open for 17 min: webhooks, live streams and search wait for it/)
  assert.match(writing.mend!, /select pg_terminate_backend\(\d+\)/)
  await client.query(`prepare transaction 'left over'`)
  const prepared = evaluateTransactions(await healthAfter(1000))
  assert.match(prepared.detail, /^the prepared transaction left over of plain in service is open for 17 min/)
  await client.query(`rollback prepared 'left over'`)
  assert.deepEqual((await readDatabaseHealth(db)).transactions, [])

  const other = new pg.Client({ host: server.folder, user: 'posthorn', database: 'service' })
  await other.connect()
  await other.query('begin; select pg_current_xact_id()')
  const { detail, status } = await checked('transactions')
  assert.deepEqual(
    [status, detail],
    [
      'ok',
      'none is open for long; 1 session of another role is hidden (grant pg_read_all_stats to see them)',
    ],
  )
  await server.ask('grant pg_read_all_stats to plain')
  assert.match(
    evaluateTransactions(await healthAfter(1000)).detail,
    /of posthorn in service is open for 17 min/,
  )
  await server.ask('revoke pg_read_all_stats from plain')
  await other.end()
})

test('a schema whose name needs quotes, and a table of another role', async (t) => {
  const other = new pg.Client({ host: server.folder, user: 'posthorn', database: 'service' })
  await other.connect()
  t.after(() => other.end())
  await other.query(`create schema "Odd" authorization plain; set search_path = "Odd";
    create sequence small maxvalue 2; grant select on small to plain; select setval('small', 2);
    create table closed as select repeat('x', 100) from generate_series(1, 2000)`)
  const url = new URL(connectionString)
  url.searchParams.set('options', '-c search_path="Odd"')
  const odd = new Db({ connection: { connectionString: url.href }, maxConnections: 1 })
  t.after(() => odd.close())
  assert.deepEqual((await readDatabaseHealth(odd)).fullestSequence, { name: 'small', used: 1 })
  assert.deepEqual(await estimateUnusedSpace(odd, 1 << 17), [])
  await other.query('grant select on closed to plain')
  assert.equal((await estimateUnusedSpace(odd, 1 << 17)).length, 1)
})

test('upkeep that cannot be read is one warning, and the database still counts as up', async (t) => {
  const other = new pg.Client({ host: server.folder, user: 'posthorn', database: 'service' })
  await other.connect()
  t.after(() => other.end())
  const readMetrics = async () => {
    const metrics = new OperatorMetrics({ db, clock: new Clock(), collectMetrics: null })
    return (await metrics.text()).text.match(/^posthorn_database_(?:up|sequence_used_ratio)\b/gm)
  }
  assert.deepEqual(await readMetrics(), ['posthorn_database_up', 'posthorn_database_sequence_used_ratio'])
  await other.query('revoke select on pg_replication_slots from public')
  assert.deepEqual(await readMetrics(), ['posthorn_database_up'])
  const checks = await checkUpkeep(db)
  assert.deepEqual(
    checks.map(({ name, status, detail }) => [name, status, detail]),
    [['upkeep', 'warning', 'cannot be read: permission denied for view pg_replication_slots']],
  )
  await other.query('grant select on pg_replication_slots to public')
})

test('WAL: a forgotten replication slot, an archive command that fails, and a server without autovacuum', async () => {
  // The slot keeps WAL since the last checkpoint.
  await server.ask('checkpoint')
  await server.ask(`select pg_create_physical_replication_slot('forgotten', true)`)
  assert.equal((await checked('WAL')).status, 'ok')
  // The slot keeps only the rest of the first segment: at least four of 16 MiB in all.
  for (let segment = 0; segment < 5; segment++)
    await server.ask(`select pg_logical_emit_message(false, 'test', 'x'), pg_switch_wal()`)
  const held = await checked('WAL')
  assert.equal(held.status, 'warning')
  assert.match(
    held.detail,
    /^the replication slot forgotten keeps 0\.1 GiB of WAL \(no reader is connected\)/,
  )
  assert.match(held.mend!, /select pg_drop_replication_slot\('forgotten'\)$/)
  const health = await readDatabaseHealth(db)
  assert.equal(await readWalBytes(db), null)
  const lost = evaluateWal({ ...health, slots: [{ ...health.slots[0]!, isLost: true }] }, null)
  assert.match(lost.detail, /^the WAL of the replication slot forgotten was removed/)
  await server.ask(`select pg_drop_replication_slot('forgotten')`)
  await server.ask('grant pg_monitor to plain')
  // A checkpoint that the segments caused may not have removed them yet.
  const seen = await readDatabaseHealth(db)
  assert.ok((await readWalBytes(db))! >= 32 << 20)
  assert.match(evaluateWal(seen, 1 << 20).detail, /^no replication slot keeps WAL back, 0\.0 GiB of WAL$/)
  const much = evaluateWal(seen, 4 * seen.maxWalBytes)
  assert.deepEqual([much.status, much.detail], ['warning', '0.1 GiB of WAL, three times max_wal_size'])

  await db.close()
  await connect('archive_mode=on', 'archive_command=false', 'autovacuum=off')
  await server.ask(`select pg_logical_emit_message(false, 'test', 'x'), pg_switch_wal()`)
  const failing = await until('the archiver to fail', async () => {
    const check = await checked('WAL')
    return check.status === 'failed' ? check : null
  })
  assert.match(failing.detail, /^archiving fails since [0-9A-F]{24}: WAL is kept until the disk is full/)
  assert.equal((await readDatabaseHealth(db)).archiver.isFailing, true)
  const vacuum = await checked('vacuum')
  assert.deepEqual([vacuum.status, vacuum.mend?.startsWith('set autovacuum=on')], ['failed', true])
})
