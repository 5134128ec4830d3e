// Leases: which node owns a row (a destination queue or an endpoint), and under which epoch.
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

/** The node that asks, and the keys of the rows that it holds. */
export interface Asker {
  nodeId: number
  held: readonly string[]
}

/**
 * `$1` and `$2` are the asker. An owner is lost if its advisory lock is gone: the process has ended, or it hangs and another
 * node has ended its connection. A row that the asker owns and does not hold was left when an answer of the database was lost.
 */
const isUnownedBut = (id: LeasedTable['id'], lost: string) =>
  `(r.owner is null or (r.owner = $1 and r.${id} <> all($2::text[])) or (r.owner <> $1 and ${lost}))`
const nodeLock = `select l.objid::bigint as id from pg_locks l where ${isNodeLock}`
/** For queries over many rows, the locks are read once. */
export const living = `living as materialized (${nodeLock})`
export const isUnowned = (id: LeasedTable['id']) => isUnownedBut(id, 'r.owner not in (select id from living)')

/** A lease lasts until its owner releases it, or is lost. It does not end with time, because a clock may jump. */
export class Leases<Row extends Lease> {
  readonly table: LeasedTable

  constructor(table: LeasedTable) {
    this.table = table
  }

  /**
   * Acquires those of the rows that have no living owner and that `mayBegin` allows. Each acquisition begins a new epoch,
   * which fences the old owner's claims and results.
   */
  async acquire(db: Writer, { nodeId, held }: Asker, at: Date, keys: readonly string[]): Promise<Row[]> {
    const { name, id, columns, mayBegin } = this.table
    return await db.query<Row>(
      // Nodes of the release before this one take a row over once its `lease_until` has passed, so it is null.
      `with free as (
        select r.${id} from ${name} r cross join (select $3::timestamptz as at) asked
        where r.${id} = any($4::text[]) and ${isUnownedBut(id, `not exists (${nodeLock} and l.objid = r.owner)`)}
          and ${mayBegin}
        order by r.${id} for no key update of r skip locked
      )
      update ${name} r set owner = $1, epoch = r.epoch + 1, lease_until = null
      from free where r.${id} = free.${id}
      returning ${columns}`,
      [nodeId, held, at, keys],
    )
  }

  /** Reads the rows that are still ours. A row that is missing from the result was lost, or may not be kept. */
  async check(db: Writer, nodeId: number, held: readonly Lease[]): Promise<Row[]> {
    const { name, id, columns, mayGoOn } = this.table
    return await db.query<Row>(
      `select ${columns} from ${name} r
      join unnest($2::text[], $3::bigint[]) as h(key, epoch) on r.${id} = h.key and r.epoch = h.epoch
      where r.owner = $1 and ${mayGoOn}`,
      [nodeId, held.map(({ key }) => key), held.map(({ epoch }) => epoch)],
    )
  }

  /** Releases a row, so that another node can acquire it. */
  async release(db: Writer, nodeId: number, { key, epoch }: Lease): Promise<void> {
    const { name, id } = this.table
    await db.query(`update ${name} set owner = null where owner = $1 and ${id} = $2 and epoch = $3`, [
      nodeId,
      key,
      epoch,
    ])
  }
}
