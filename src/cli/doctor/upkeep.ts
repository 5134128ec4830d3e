// The doctor's checks of PostgreSQL's upkeep: vacuum, unused space, numbers that run out, WAL, long transactions.
import { counted } from '../../base/counted.ts'
import type { Queryable } from '../../postgres/db.ts'
import {
  type DatabaseHealth,
  estimateUnusedSpace,
  type OpenTransaction,
  readDatabaseHealth,
  readWalBytes,
  type TableSpace,
} from '../../store/database-health.ts'
import { type Check, failed, gibibytes, ok, warning } from './checks.ts'

/** Smaller tables waste too little to matter. */
const minTableBytes = 1 << 30

/** The other checks do not depend on these, so a fault is one of the findings. */
export async function checkUpkeep(db: Queryable): Promise<Check[]> {
  try {
    const health = await readDatabaseHealth(db)
    return [
      evaluateVacuum(health),
      evaluateSpace(await estimateUnusedSpace(db, minTableBytes)),
      evaluateIds(health),
      evaluateSequences(health),
      evaluateWal(health, await readWalBytes(db)),
      evaluateTransactions(health),
    ]
  } catch (error) {
    return [
      warning(
        'upkeep',
        `cannot be read: ${(error as Error).message}`,
        'if the role of Posthorn lacks a right, grant it; in all other cases look into the log of PostgreSQL, or report this',
      ),
    ]
  }
}

/** A burst leaves dead rows until autovacuum's next round, which is due within a minute. */
const [lateRows, lateSeconds] = [10_000, 600]
const maxNamed = 3

/** Whether autovacuum keeps up. A table is late at twice the dead rows at which autovacuum starts. */
export function evaluateVacuum({ isAutovacuumOn, tables }: DatabaseHealth): Check {
  const name = 'vacuum'
  if (!isAutovacuumOn)
    return failed(
      name,
      'autovacuum is off: tables grow without bound, and writes stop in the end',
      'set autovacuum=on and track_counts=on in postgresql.conf and reload it',
    )
  const off = tables.filter(({ isAutovacuumOn }) => !isAutovacuumOn).map(({ name }) => name)
  if (off.length > 0)
    return warning(
      name,
      `autovacuum is off for ${listNames(off)}`,
      `alter table ${baseOf(off[0]!)} reset (autovacuum_enabled, toast.autovacuum_enabled), and so on for each`,
    )
  const late = tables.filter(
    ({ deadRows, threshold, secondsSinceVacuum }) =>
      deadRows > Math.max(lateRows, 2 * threshold) && secondsSinceVacuum > lateSeconds,
  )
  if (late.length === 0) return ok(name, 'autovacuum keeps up')
  const found = late.slice(0, maxNamed).map(({ name, deadRows, secondsSinceVacuum }) => {
    return `${name} has ${deadRows.toLocaleString('en')} dead rows, and no vacuum ended for ${duration(secondsSinceVacuum)}`
  })
  return warning(
    name,
    found.join('; ') + more(late.length),
    `run vacuum ${baseOf(late[0]!.name)}; if it recurs, lower autovacuum_naptime or raise autovacuum_max_workers and autovacuum_vacuum_cost_limit`,
  )
}

const baseOf = (name: string) => name.replace(' (TOAST)', '')
const more = (count: number) => (count > maxNamed ? `; and ${counted(count - maxNamed, 'more table')}` : '')
const listNames = (names: string[]) => names.slice(0, maxNamed).join(', ') + more(names.length)

/** Rows that were deleted leave room for new ones. More than half of a table is room that new rows have not filled. */
const maxUnusedShare = 0.5

export function evaluateSpace(tables: readonly TableSpace[]): Check {
  const name = 'unused space'
  const loose = tables.filter(
    ({ sizeBytes, unusedBytes }) => unusedBytes > Math.max(minTableBytes, sizeBytes * maxUnusedShare),
  )
  if (loose.length === 0) return ok(name, 'no large table is mostly empty')
  const found = loose
    .slice(0, maxNamed)
    .map(
      ({ name, sizeBytes, unusedBytes }) =>
        `${name}: about ${gibibytes(unusedBytes)} of ${gibibytes(sizeBytes)}`,
    )
  return warning(
    name,
    found.join('; ') + more(loose.length),
    `new rows fill it; to free the disk now, use pg_repack, or stop the nodes and run vacuum full ${loose[0]!.name}`,
  )
}

/** PostgreSQL refuses writes 3,000,000 before 2^31, and hurries from 1,600,000,000 on. */
const [hurryAge, stopAge] = [1_600_000_000, 2 ** 31 - 3_000_000]
/** Autovacuum freezes at its limit. Half as much again shows that it does not get through. */
const lateAgeFactor = 1.5

export function evaluateIds({ ids }: DatabaseHealth): Check {
  const name = 'transaction ids'
  const shareOf = (age: number) => `${Math.round((100 * age) / stopAge)} %`
  const describe = ({ kind, database, age }: DatabaseHealth['ids'][number]) =>
    `${kind} ids: ${age.toLocaleString('en')} (${shareOf(age)} of the range) in the database ${database}`
  const late = ids.filter(({ age, maxAge }) => age > Math.min(hurryAge, maxAge * lateAgeFactor))
  if (late.length === 0)
    return ok(name, ids.map(({ kind, age }) => `${shareOf(age)} of the ${kind} ids are in use`).join(', '))
  const detail = `rows are not frozen in time; ${late.map(describe).join('; ')}`
  const mend = `end what holds rows back (see long transactions and WAL below), then run vacuum (freeze) in the database ${late[0]!.database}`
  return late.some(({ age }) => age > hurryAge)
    ? failed(name, `${detail}: at 100 % PostgreSQL refuses writes`, mend)
    : warning(name, detail, mend)
}

const [manyUsed, nearlyAllUsed] = [0.5, 0.9]

export function evaluateSequences({ fullestSequence }: DatabaseHealth): Check {
  const name = 'sequences'
  if (!fullestSequence) return ok(name, 'none has been used yet')
  const used = fullestSequence.used
  const percent = used < 0.01 ? 'less than 1 %' : `${Math.floor(100 * used)} %`
  const detail = `${percent} of ${fullestSequence.name} is used${used > manyUsed ? ': at 100 % its inserts fail' : ', the fullest'}`
  if (used <= manyUsed) return ok(name, detail)
  const mend = `make its column and alter sequence ${fullestSequence.name} as bigint, or report this: no sequence of Posthorn should get this far`
  return used > nearlyAllUsed ? failed(name, detail, mend) : warning(name, detail, mend)
}

/** Whether a replication slot or a failing archive command keeps WAL, which fills the disk. */
export function evaluateWal(
  { slots, maxWalBytes, archiver }: DatabaseHealth,
  walBytes: number | null,
): Check {
  const name = 'WAL'
  const size = walBytes === null ? '' : `, ${gibibytes(walBytes)} of WAL`
  if (archiver.isFailing)
    return failed(
      name,
      `archiving fails since ${archiver.failedFile}: WAL is kept until the disk is full${size}`,
      'see the log of PostgreSQL and correct archive_command or its target',
    )
  const lost = slots.find(({ isLost }) => isLost)
  if (lost)
    return warning(
      name,
      `the WAL of the replication slot ${lost.name} was removed: its reader cannot continue`,
      `build its standby anew, then select pg_drop_replication_slot('${lost.name}')`,
    )
  const holding = slots.find(({ heldBytes }) => heldBytes > maxWalBytes)
  if (holding) {
    const who = holding.isActive ? 'its reader is slow' : 'no reader is connected'
    return warning(
      name,
      `the replication slot ${holding.name} keeps ${gibibytes(holding.heldBytes)} of WAL (${who}): it grows until the disk is full`,
      `start or repair its reader, or if there is none any more: select pg_drop_replication_slot('${holding.name}')`,
    )
  }
  if (walBytes !== null && walBytes > 3 * maxWalBytes)
    return warning(
      name,
      `${gibibytes(walBytes)} of WAL, three times max_wal_size`,
      'look for slow checkpoints in the log of PostgreSQL, and for a large wal_keep_size',
    )
  return ok(
    name,
    `${slots.length === 0 ? 'no replication slot keeps WAL back' : `little WAL is kept for ${counted(slots.length, 'replication slot')}`}${size}`,
  )
}

/** A backup reads in one transaction, which may take long. A transaction that has written delays events. */
const maxOpenSeconds: Record<OpenTransaction['kind'], number> = { reading: 3600, writing: 600, prepared: 600 }

export function evaluateTransactions({ transactions, hiddenSessions }: DatabaseHealth): Check {
  const name = 'transactions'
  const long = transactions.find(({ kind, seconds }) => seconds > maxOpenSeconds[kind])
  if (long) return describeLong(long)
  const hidden =
    hiddenSessions > 0
      ? `; ${counted(hiddenSessions, 'session of another role is', 'sessions of other roles are')} hidden (grant pg_read_all_stats to see them)`
      : ''
  return ok(name, `none is open for long${hidden}`)
}

function describeLong({ id, kind, role, database, state, seconds }: OpenTransaction): Check {
  const effect =
    kind === 'reading'
      ? 'vacuum removes no row that was deleted since'
      : 'webhooks, live streams and search wait for it, and vacuum removes no row that was deleted since'
  const subject = kind === 'prepared' ? `the prepared transaction ${id}` : `process ${id}, ${state},`
  const mend =
    kind === 'prepared'
      ? `in the database ${database}: rollback prepared '${id}', or commit prepared '${id}'`
      : `if it is no backup: select pg_terminate_backend(${id})`
  return warning(
    'transactions',
    `${subject} of ${role} in ${database} is open for ${duration(seconds)}: ${effect}`,
    mend,
  )
}

function duration(seconds: number): string {
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`
  return seconds < 48 * 3600 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`
}
