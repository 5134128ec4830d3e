// Leases: which node owns a row (a destination queue or an endpoint), until when, and under which epoch.
import type { Writer } from '../postgres/db.ts'
import { isNodeLock } from './nodes.ts'

/** One acquisition of a row. Claims and results count only under the row's current epoch. */
export interface Lease {
  key: string
  epoch: number
}

/** A table whose rows nodes own. Its texts are constant SQL for statements in which the row is `r`. */
export interface LeasedTable {
  name: 'route' | 'webhook'
  id: 'key' | 'id'
  /** The columns that an owner reads: `key`, `epoch` and more. */
  columns: string
  /** The conditions under which the row may be acquired at the time `asked.at`, and under which its owner may keep it. */
  mayBegin: string
  mayGoOn: string
}

/**
 * `$1` is the node that asks. An owner is lost if its lease has run out, or its advisory lock is gone, as after a kill -9.
 */
const isUnownedBut = (lost: string) =>
  `(r.owner is null or r.lease_until < now() or (r.owner <> $1 and ${lost}))`
const nodeLock = `select l.objid::bigint as id from pg_locks l where ${isNodeLock}`
/** For queries over many rows, the locks are read once. */
export const living = `living as materialized (${nodeLock})`
export const isUnowned = isUnownedBut('r.owner not in (select id from living)')

/** Leases last in real time, even if tests change the clock. */
export class Leases<Row extends Lease> {
  readonly table: LeasedTable

  constructor(table: LeasedTable) {
    this.table = table
  }

  /**
   * Acquires those of the rows that have no living owner and that `mayBegin` allows. Each acquisition begins a new epoch,
   * which fences the old owner's claims and results.
   */
  async acquire(
    db: Writer,
    { nodeId, leaseMs }: { nodeId: number; leaseMs: number },
    at: Date,
    keys: readonly string[],
  ): Promise<Row[]> {
    const { name, id, columns, mayBegin } = this.table
    return await db.query<Row>(
      `with free as (
        select r.${id} from ${name} r cross join (select $2::timestamptz as at) asked
        where r.${id} = any($3::text[]) and ${isUnownedBut(`not exists (${nodeLock} and l.objid = r.owner)`)}
          and ${mayBegin}
        order by r.${id} for no key update of r skip locked
      )
      update ${name} r set owner = $1, epoch = r.epoch + 1, lease_until = now() + $4 * interval '1 ms'
      from free where r.${id} = free.${id}
      returning ${columns}`,
      [nodeId, at, keys, leaseMs],
    )
  }

  /** Renews the leases that are still ours. A lease that is missing from the result was lost, or may not be kept. */
  async renew(db: Writer, nodeId: number, held: readonly Lease[], leaseMs: number): Promise<Row[]> {
    const { name, id, columns, mayGoOn } = this.table
    return await db.query<Row>(
      `with ours as (
        select r.${id} from ${name} r
        join unnest($2::text[], $3::bigint[]) as h(key, epoch) on r.${id} = h.key and r.epoch = h.epoch
        where r.owner = $1 and ${mayGoOn} order by r.${id} for no key update of r
      )
      update ${name} r set lease_until = now() + $4 * interval '1 ms' from ours where r.${id} = ours.${id}
      returning ${columns}`,
      [nodeId, held.map(({ key }) => key), held.map(({ epoch }) => epoch), leaseMs],
    )
  }

  /** Releases a row at once, so that another node need not wait until the lease runs out. */
  async release(db: Writer, nodeId: number, { key, epoch }: Lease): Promise<void> {
    const { name, id } = this.table
    await db.query(
      `update ${name} set owner = null, lease_until = null where owner = $1 and ${id} = $2 and epoch = $3`,
      [nodeId, key, epoch],
    )
  }
}
