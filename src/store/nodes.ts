// The nodes that are up: each holds a session advisory lock under its number, so that a dead one is seen at once.
import type { PoolClient } from 'pg'
import { type Db, DbFault, type Queryable, statement, type Writer } from '../postgres/db.ts'
import { isLockOf, lockClasses } from '../postgres/locks.ts'

/** That the advisory lock `l` is a node's. */
export const isNodeLock = isLockOf(lockClasses.node)

/** A row that stays is deleted by others; a stop must not wait for a silent server. */
const leaveMs = 5_000

export interface Node {
  id: number
  /** Rejects when the connection that holds the lock is lost: the node may be taken for dead, and has to leave. */
  lost: Promise<never>
  /**
   * Asks over that connection, and may find it lost: one that says nothing is never told that the server has ended it, as
   * when that died without a word and another took its address.
   */
  probe(): void
  /** Gives the lock up, and its connection back; to be called once. */
  leave(): Promise<void>
}

/** Where a node takes mail for our own domains, and captured mail; null where it does not, or not yet. */
export interface NodeAddresses {
  smtp: string | null
  capture: string | null
}

/** How the others know a node: by its addresses, and its mark among the blobs. */
export interface NodeProfile extends NodeAddresses {
  mark: { folder: number; word: string } | null
}

/** Registers this node under a new number and holds its lock on a connection of its own. */
export async function joinNodes(db: Db, { smtp, capture, mark }: NodeProfile, at: Date): Promise<Node> {
  const client = await db.dedicated()
  const { promise: lost, reject } = Promise.withResolvers<never>()
  lost.catch(() => {}) // whoever does not wait for it learns of the loss from its lease
  const lose = (error: Error) => reject(new DbFault(error))
  client.once('error', lose)
  try {
    const { rows } = await client.query(
      `insert into node (id, smtp_address, capture_address, mark_folder, mark_word, started_at)
      values (nextval('node_id'), $1, $2, $3, $4, $5) returning id`,
      [smtp, capture, mark?.folder, mark?.word, at],
    )
    const id: number = Number(rows[0].id)
    await client.query('select pg_advisory_lock($1, $2)', [lockClasses.node, id])
    await db.query(
      `delete from node n where n.id <> $1 and not exists (
        select from pg_locks l where ${isNodeLock} and l.objid = n.id)
        and n.started_at < now() - interval '1 minute'`,
      [id],
    )
    return { id, lost, probe: makeProbe(client, lose), leave: () => leave(client, id) }
  } catch (error) {
    client.release(true)
    throw error instanceof DbFault ? error : new DbFault(error as Error)
  }
}

/** From now on the others find the node there. */
export async function writeNodeAddresses(
  db: Writer,
  id: number,
  { smtp, capture }: NodeAddresses,
): Promise<void> {
  await db.query('update node set smtp_address = $2, capture_address = $3 where id = $1', [id, smtp, capture])
}

/** One question at a time; silence is loss as late as for any other, for a slow server still holds the lock. */
function makeProbe(client: PoolClient, lose: (error: Error) => void): () => void {
  let isAsking = false
  return () => {
    if (isAsking) return
    isAsking = true
    client.query(statement('select 1', [])).then(() => (isAsking = false), lose)
  }
}

async function leave(client: PoolClient, id: number): Promise<void> {
  const leaving = { ...statement('delete from node where id = $1', [id]), query_timeout: leaveMs }
  await client.query(leaving).catch(() => {})
  client.release(true)
}

/** Where living nodes take mail for our own domains, or capture mail. */
export async function listNodeAddresses(db: Queryable, kind: 'smtp' | 'capture'): Promise<string[]> {
  const rows = await db.query<{ address: string | null }>(
    `select case $1 when 'smtp' then n.smtp_address else n.capture_address end as address from node n where exists (
      select from pg_locks l where ${isNodeLock} and l.objid = n.id)`,
    [kind],
  )
  return rows.flatMap(({ address }) => address ?? [])
}

/** The marks of living nodes. */
export async function listNodeMarks(db: Queryable): Promise<{ folder: number; word: string }[]> {
  return await db.query(
    `select n.mark_folder as folder, n.mark_word as word from node n where n.mark_word is not null and exists (
      select from pg_locks l where ${isNodeLock} and l.objid = n.id)`,
  )
}
