// The nodes that are up: each holds a session advisory lock under its number, so that a dead one is seen at once.
import type { PoolClient } from 'pg'
import { Arguments } from '../postgres/arguments.ts'
import { type Db, DbFault, type Queryable, statement, type Writer } from '../postgres/db.ts'
import { isLockOf, lockClasses } from '../postgres/locks.ts'

/** That the advisory lock `l` is a node's. */
export const isNodeLock = isLockOf(lockClasses.node)

/** That the node `n` hangs: its process says nothing, while its connections, and so its lock, are still there. */
const isSilent = `coalesce(n.seen_at < now() - interval '15 s', false)`

/** A row that stays is deleted by others; a stop must not wait for a silent server. */
const leaveMs = 5_000

export interface Node {
  id: number
  /** Rejects when the connection that holds the lock is lost: the node may be taken for dead, and has to leave. */
  lost: Promise<never>
  /**
   * Has the others hear of this node, over that connection, and may find it lost: one that says nothing is never told that
   * the server has ended it, as when that died without a word and another took its address.
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

/** Values of the settings that all nodes must share, by the names of the settings. */
export type AgreedSettings = Record<string, string>

/** A living node whose setting has another value than ours. */
export interface Disagreement {
  node: number
  /** The address of that node's operator listener. */
  operator: string | null
  setting: string
  value: string
}

/** What operators see of a node: its version, what it runs, where its operator listener is, and its settings. */
export interface NodeProgram {
  version: string
  roles: readonly string[]
  operator: string
  /** The machine's name. */
  host: string
  agreed: AgreedSettings
}

/** What a node has left among the blobs: the number of its data folder, and a word. */
export interface NodeMark {
  folder: number
  word: string
}

/** How the others know a node: by its addresses, and its mark among the blobs. */
export interface NodeProfile extends NodeAddresses {
  mark: NodeMark | null
  program: NodeProgram | null
}

/** Registers this node under a new number and holds its lock on a connection of its own. */
export async function joinNodes(db: Db, profile: NodeProfile, at: Date): Promise<Node> {
  const client = await db.dedicated()
  const { promise: lost, reject } = Promise.withResolvers<never>()
  lost.catch(() => {}) // whoever does not wait for it learns of the loss from its lease
  const lose = (error: Error) => reject(new DbFault(error))
  client.once('error', lose)
  try {
    // Nothing of it need survive a crash of the server, and the lock does not: no standby is waited for.
    await client.query('set synchronous_commit = off')
    const id = await insertNode(client, profile, at)
    await client.query('select pg_advisory_lock($1, $2)', [lockClasses.node, id])
    await db.query(
      `delete from node n where n.id <> $1 and not exists (
        select from pg_locks l where ${isNodeLock} and l.objid = n.id)
        and n.started_at < now() - interval '1 minute'`,
      [id],
    )
    return { id, lost, probe: makeProbe(client, id, lose), leave: () => leave(client, id) }
  } catch (error) {
    client.release(true)
    throw error instanceof DbFault ? error : new DbFault(error as Error)
  }
}

async function insertNode(
  client: PoolClient,
  { smtp, capture, mark, program }: NodeProfile,
  at: Date,
): Promise<number> {
  const sequence = await client.query(`select nextval('node_id') as id`)
  const named = new Arguments({
    id: sequence.rows[0].id,
    smtp_address: smtp,
    capture_address: capture,
    mark_folder: mark?.folder ?? null,
    mark_word: mark?.word ?? null,
    version: program?.version ?? null,
    roles: program?.roles ?? null,
    operator_address: program?.operator ?? null,
    started_at: at,
    host: program?.host ?? null,
    agreed: program ? JSON.stringify(program.agreed) : null,
  })
  const { rows } = await client.query(`${named.insertInto('node')} returning id`, named.values)
  return Number(rows[0].id)
}

/** From now on the others find the node there. */
export async function writeNodeAddresses(
  db: Writer,
  id: number,
  { smtp, capture }: NodeAddresses,
): Promise<void> {
  await db.query('update node set smtp_address = $2, capture_address = $3 where id = $1', [id, smtp, capture])
}

/** From now on the others look for that mark; false where the node is not known any more. */
export async function writeNodeMark(db: Writer, id: number, word: string): Promise<boolean> {
  const rows = await db.query('update node set mark_word = $2 where id = $1 returning id', [id, word])
  return rows.length > 0
}

/** One question at a time; silence is loss as late as for any other, for a slow server still holds the lock. */
function makeProbe(client: PoolClient, id: number, lose: (error: Error) => void): () => void {
  const seen = `update node set seen_at = now() where id = $1 and (seen_at > now() - interval '3 s') is not true`
  let isAsking = false
  return () => {
    if (isAsking) return
    isAsking = true
    client.query(statement(seen, [id])).then(() => (isAsking = false), lose)
  }
}

async function leave(client: PoolClient, id: number): Promise<void> {
  const leaving = { ...statement('delete from node where id = $1', [id]), query_timeout: leaveMs }
  await client.query(leaving).catch(() => {})
  client.release(true)
}

/**
 * Where nodes take mail for our own domains, or capture mail, in the order to try: the node `first`, then the others in a
 * random order, and those that hang last.
 */
export async function listNodeAddresses(
  db: Queryable,
  kind: 'smtp' | 'capture',
  first: number | null,
): Promise<string[]> {
  const rows = await db.query<{ address: string | null }>(
    `select case $1 when 'smtp' then n.smtp_address else n.capture_address end as address from node n where exists (
      select from pg_locks l where ${isNodeLock} and l.objid = n.id)
    order by n.id is distinct from $2, ${isSilent}, random()`,
    [kind, first],
  )
  return rows.flatMap(({ address }) => address ?? [])
}

/** The marks of living nodes. */
export async function listNodeMarks(db: Queryable): Promise<NodeMark[]> {
  return await db.query(
    `select n.mark_folder as folder, n.mark_word as word from node n where n.mark_word is not null and exists (
      select from pg_locks l where ${isNodeLock} and l.objid = n.id)`,
  )
}

/** The settings of living nodes that differ from ours. A setting that only one of two releases knows is not compared. */
export async function listDisagreements(db: Queryable, own: AgreedSettings): Promise<Disagreement[]> {
  return await db.query(
    `select n.id as node, n.operator_address as operator, s.setting, s.value
    from node n cross join lateral jsonb_each_text(n.agreed) s (setting, value)
    where $1::jsonb ->> s.setting <> s.value and exists (
      select from pg_locks l where ${isNodeLock} and l.objid = n.id)
    order by n.id, s.setting`,
    [JSON.stringify(own)],
  )
}

export interface NodeRow extends NodeAddresses {
  id: number
  /** Null if the node did not report it; the same holds for the roles. */
  version: string | null
  roles: string[] | null
  operator: string | null
  host: string | null
  startedAt: Date
  /** Whether it holds its lock, and was heard of lately; a node that does not has ended without leaving, or hangs. */
  isAlive: boolean
  /** Destination queues that it owns. */
  queues: number
}

/** The numbers of the nodes whose processes hold their locks, among them those that hang. */
export async function listLivingNodes(db: Queryable): Promise<number[]> {
  const rows = await db.query<{ id: number }>(
    `select n.id from node n where exists (select from pg_locks l where ${isNodeLock} and l.objid = n.id) order by n.id`,
  )
  return rows.map(({ id }) => id)
}

/** Every node that has not left, in the order in which they came. */
export async function listNodes(db: Queryable): Promise<NodeRow[]> {
  return await db.query<NodeRow>(
    `select n.id, n.version, n.roles, n.operator_address as operator, n.host, n.smtp_address as smtp,
      n.capture_address as capture, n.started_at as "startedAt",
      not ${isSilent} and exists (select from pg_locks l where ${isNodeLock} and l.objid = n.id) as "isAlive",
      coalesce(o.queues, 0) as queues
    from node n left join (select owner, count(*) as queues from route where owner is not null group by owner) o
      on o.owner = n.id
    order by n.id`,
  )
}
