// Facts about PostgreSQL that the service's own role may read: vacuum, numbers that run out, WAL, long transactions.
import type { Queryable } from '../postgres/db.ts'

export interface DatabaseHealth {
  isAutovacuumOn: boolean
  /** Tables with dead rows, most dead rows first. `name` ends in ` (TOAST)` for the long values of a table. */
  tables: VacuumedTable[]
  /** The database of the cluster whose oldest transaction id is the oldest, and likewise for multixact ids. */
  ids: IdAge[]
  /** The sequence of which the largest share is used; null if there is none. */
  fullestSequence: { name: string; used: number } | null
  slots: ReplicationSlot[]
  maxWalBytes: number
  archiver: { isFailing: boolean; failedFile: string | null }
  /** Open transactions, the oldest first. */
  transactions: OpenTransaction[]
  /** Sessions in this database whose transactions this role may not see. */
  hiddenSessions: number
}

export interface VacuumedTable {
  name: string
  deadRows: number
  /** Autovacuum starts above this number of dead rows. */
  threshold: number
  isAutovacuumOn: boolean
  /** Since the last vacuum, or since the start of the server if there was none. */
  secondsSinceVacuum: number
}

export interface IdAge {
  kind: 'transaction' | 'multixact'
  database: string
  age: number
  /** Autovacuum freezes rows above this age. */
  maxAge: number
}

export interface ReplicationSlot {
  name: string
  isActive: boolean
  /** Its WAL was removed, so its reader cannot continue. */
  isLost: boolean
  heldBytes: number
}

export interface OpenTransaction {
  /** The process of its session, or the name of a prepared transaction. */
  id: string
  kind: 'reading' | 'writing' | 'prepared'
  role: string
  database: string
  state: string
  seconds: number
}

/** Reads all facts. The server must be a primary. Needs no right beyond those of an ordinary role. */
export async function readDatabaseHealth(db: Queryable): Promise<DatabaseHealth> {
  const [server] = await db.query<Omit<DatabaseHealth, 'tables'>>(
    `select current_setting('autovacuum')::boolean and current_setting('track_counts')::boolean as "isAutovacuumOn",
      (${idAges}) as ids, (${fullestSequence}) as "fullestSequence", (${slots}) as slots,
      pg_size_bytes(current_setting('max_wal_size'))::float8 as "maxWalBytes", (${archiver}) as archiver,
      (${transactions}) as transactions, (${hiddenSessions}) as "hiddenSessions"`,
  )
  return { ...server!, tables: await db.query<VacuumedTable>(vacuumedTables) }
}

/** Null: the files cannot be listed, usually because this role may not. */
export async function readWalBytes(db: Queryable): Promise<number | null> {
  const query = 'select sum(size)::float8 as bytes from pg_ls_waldir()'
  return await db.query<{ bytes: number }>(query).then(
    ([row]) => row!.bytes,
    () => null,
  )
}

const listOf = (query: string) => `select coalesce(jsonb_agg(q), '[]') from (${query}) q`

/** A table's own settings of autovacuum. Without its own, a TOAST table has those of its table. */
const option = (name: string) =>
  `coalesce((select option_value from pg_options_to_table(coalesce(c.reloptions, o.reloptions))
    where option_name = '${name}'), current_setting('${name}', true))`
const vacuumedTables = `select coalesce(o.relname || ' (TOAST)', c.relname) as name,
    pg_stat_get_dead_tuples(c.oid) as "deadRows",
    ${option('autovacuum_vacuum_threshold')}::float8
      + ${option('autovacuum_vacuum_scale_factor')}::float8 * greatest(c.reltuples, 0) as threshold,
    coalesce(${option('autovacuum_enabled')}, 'on')::boolean as "isAutovacuumOn",
    extract(epoch from clock_timestamp() - coalesce(greatest(pg_stat_get_last_vacuum_time(c.oid),
      pg_stat_get_last_autovacuum_time(c.oid)), pg_postmaster_start_time()))::float8 as "secondsSinceVacuum"
  from pg_class c left join pg_class o on o.reltoastrelid = c.oid
  where coalesce(o.relnamespace, c.relnamespace) = quote_ident(current_schema())::regnamespace and c.relkind in ('r', 't')
    and pg_stat_get_dead_tuples(c.oid) > 0
  order by "deadRows" desc`

const idAgeOf = (kind: IdAge['kind'], age: string, setting: string) =>
  `(select '${kind}' as kind, datname as database, ${age} as age, current_setting('${setting}')::integer as "maxAge"
    from pg_database order by ${age} desc limit 1)`
const idAges = listOf(
  `${idAgeOf('transaction', 'age(datfrozenxid)', 'autovacuum_freeze_max_age')}
  union all ${idAgeOf('multixact', 'mxid_age(datminmxid)', 'autovacuum_multixact_freeze_max_age')}`,
)

const fullestSequence = `select to_jsonb(q) from (
    select sequencename as name, (last_value::float8 - min_value) / (max_value::float8 - min_value) as used
    from pg_sequences where schemaname = current_schema() and increment_by > 0 and last_value is not null
    order by used desc limit 1) q`

const slots = listOf(
  `select slot_name as name, active as "isActive", coalesce(wal_status = 'lost', false) as "isLost",
    coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0) as "heldBytes"
  from pg_replication_slots order by "heldBytes" desc`,
)

/** A failure counts until a file is archived again. */
const archiver = `select to_jsonb(q) from (
    select current_setting('archive_mode') <> 'off' and last_failed_time is not null
        and last_failed_time >= coalesce(last_archived_time, '-infinity') as "isFailing",
      last_failed_wal as "failedFile"
    from pg_stat_archiver) q`

/**
 * Transactions that keep vacuum from removing dead rows: all of this database. One that has written delays the readers of
 * the outbox too, in whatever database of the cluster it is.
 */
const transactions = listOf(
  `select * from (
    select a.pid::text as id, case when a.backend_xid is null then 'reading' else 'writing' end as kind,
      a.usename as role, a.datname as database, a.state,
      extract(epoch from clock_timestamp() - a.xact_start)::float8 as seconds
    from pg_stat_activity a
    where a.backend_type = 'client backend' and a.pid <> pg_backend_pid() and a.xact_start is not null
      and (a.backend_xid is not null or a.backend_xmin is not null and a.datname = current_database())
    union all
    select p.gid, 'prepared', p.owner, p.database, 'prepared',
      extract(epoch from clock_timestamp() - p.prepared)::float8
    from pg_prepared_xacts p
  ) t order by seconds desc`,
)

const hiddenSessions = `select count(*)::integer from pg_stat_activity
  where datname = current_database() and usename is not null and backend_type is null`

/** A table larger than `minBytes`, with the estimated part of it that holds no rows. */
export interface TableSpace {
  name: string
  /** With its TOAST table, without its indexes. */
  sizeBytes: number
  unusedBytes: number
}

/** Pages sampled per table: the estimate is within a tenth of the size, at 4 MiB read. */
const sampledPages = 500

/**
 * Estimates the space without rows from the rows of a random sample of pages. PostgreSQL's own extension for it needs
 * rights that an ordinary role lacks. Free space that the fill factor reserves does not count.
 */
export async function estimateUnusedSpace(db: Queryable, minBytes: number): Promise<TableSpace[]> {
  const tables = await db.query<{
    name: string
    sizeBytes: number
    pages: number
    fill: number
    width: string
  }>(
    `select quote_ident(c.relname) as name, pg_table_size(c.oid) as "sizeBytes",
      pg_relation_size(c.oid) / current_setting('block_size')::integer as pages,
      coalesce((select option_value::float8 from pg_options_to_table(c.reloptions) where option_name = 'fillfactor'), 100)
        / 100 as fill,
      (select string_agg(format('coalesce(pg_column_size(%I), 0)', attname), ' + ') from pg_attribute
        where attrelid = c.oid and attnum > 0 and not attisdropped) as width
    from pg_class c
    where c.relnamespace = quote_ident(current_schema())::regnamespace and c.relkind = 'r'
      and has_table_privilege(c.oid, 'select') and pg_table_size(c.oid) > $1
    order by 1`,
    [minBytes],
  )
  const found: TableSpace[] = []
  for (const { name, sizeBytes, pages, fill, width } of tables) {
    const share = Math.min(1, sampledPages / Math.max(1, pages))
    const [sample] = await db.query<{ bytes: number }>(
      `select coalesce(sum(${rowOverheadBytes} + ${width}), 0)::float8 as bytes from ${name} tablesample system (${share * 100})`,
    )
    const usedBytes = sample!.bytes / share / fill
    found.push({ name, sizeBytes, unusedBytes: Math.max(0, sizeBytes - usedBytes) })
  }
  return found
}

/** The header of a row and its entry in the page. */
const rowOverheadBytes = 28
