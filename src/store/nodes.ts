// The living nodes: each holds a session advisory lock under its number, so that a dead node is seen at once.
import type { PoolClient } from 'pg'
import { Arguments } from '../postgres/arguments.ts'
import { type Db, DbFault, type Queryable, statement, type Writer } from '../postgres/db.ts'
import { isLockOf, lockClasses } from '../postgres/locks.ts'

/** The condition that the advisory lock `l` is a node's. */
export const isNodeLock = isLockOf(lockClasses.node)
/** The condition that the node `n` holds its lock. */
const hasLock = `exists (select from pg_locks l where ${isNodeLock} and l.objid = n.id)`

/**
 * The condition that the node `n` seems to hang: no report, while its connections, and so its lock, still exist. Only for
 * operators, because a clock may be wrong: work is taken over once the lock is gone.
 */
const isSilent = `coalesce(n.seen_at < now() - interval '15 s', false)`

/**
 * How long a notification, or the deletion of the node's row at its stop, may wait for a silent server. Other nodes delete
 * a row that stays.
 */
const silentMs = 5_000

/** The latest report of a node. `reported` changes with each one; null before the first. */
export interface NodeReport {
  id: number
  reported: string | null
}

export interface Node {
  id: number
  /** Rejects when the connection that holds the lock is lost. The node may be considered dead, and must leave. */
  lost: Promise<never>
  /**
   * Reports this node as living, over that connection, with the word of its newest mark, if any. May find the connection
   * lost: without a query, the client never notices that the server has ended it, for example if the server died silently
   * and another took its address. Returns the latest reports of the other nodes that hold their locks. Returns null if this
   * node is lost, and during an earlier report, in which it does nothing.
   */
  report(word: string | null): Promise<NodeReport[] | null>
  /** When the last answered report was sent, or when the node joined, in monotonic milliseconds. */
  readonly reportedMs: number
  /**
   * Ends the connection by which another node holds its lock, unless it has reported again. So a node that hangs counts as
   * dead. Returns whether it was ended.
   */
  endSilent(silent: NodeReport): Promise<boolean>
  /** Whether other nodes live, as of the last report or join. True before the first report. */
  readonly hasOthers: boolean
  /** Sends a text of up to 7,999 bytes to the nodes that listen, this node included. Texts can be lost. */
  notify(text: string): Promise<void>
  /** Releases the lock and its connection. Must be called once. */
  leave(): Promise<void>
}

/** The addresses at which a node takes mail for our own domains, and captured mail; null if it does not, or not yet. */
export interface NodeAddresses {
  smtp: string | null
  capture: string | null
}

/** Values of the settings that all nodes must share, by setting name. */
export type AgreedSettings = Record<string, string>

/** A setting of a living node that differs from ours. */
export interface Disagreement {
  node: number
  /** The address of that node's operator listener. */
  operator: string | null
  setting: string
  value: string
}

/** Details of a node for operators. `operator` is the address of its operator listener. */
export interface NodeProgram {
  version: string
  roles: readonly string[]
  operator: string
  /** The machine's name. */
  host: string
  agreed: AgreedSettings
}

/**
 * A node's file in the blob store, by which other nodes see that they share the store. It has the number of the node's data
 * folder, and a changing word.
 */
export interface NodeMark {
  folder: number
  word: string
}

/** A node as other nodes know it, by its addresses and its mark among the blobs. */
export interface NodeProfile extends NodeAddresses {
  mark: NodeMark | null
  program: NodeProgram | null
}

const channel = 'posthorn_nodes'
/** The text of a node that has joined. */
const joined = ''

interface Joining {
  /** Gets each text that a node sends. */
  heard?: (text: string) => void
  /** The number that this process had before, and has lost. */
  former?: number | null
}

/** Registers this node under a new number, and holds its lock on a dedicated connection. */
export async function joinNodes(
  db: Db,
  profile: NodeProfile,
  at: Date,
  { heard = () => {}, former = null }: Joining = {},
): Promise<Node> {
  const client = await db.dedicated()
  const joinedMs = performance.now()
  const { promise: lost, reject } = Promise.withResolvers<never>()
  lost.catch(() => {}) // a caller that does not wait for it learns of the loss from its lease
  const lose = (error: Error) => reject(new DbFault(error))
  client.once('error', lose)
  try {
    // The lock does not survive a crash of the server, so the row need not either. The commit waits for no disk and no
    // standby.
    await client.query('set synchronous_commit = off')
    const id = await insertNode(client, profile, at)
    await client.query('select pg_advisory_lock($1, $2)', [lockClasses.node, id])
    await db.query(
      `delete from node n where n.id <> $1 and not ${hasLock}
        and (n.id = $2 or n.started_at < now() - interval '1 minute')`,
      [id, former],
    )
    const node = connectedNode(client, id, { lost, lose, heard, joinedMs })
    await client.query(`listen ${channel}`)
    // Without it, other nodes learn of this node at their next report.
    await node.notify(joined).catch(() => {})
    return node
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

/** Publishes the node's addresses to the other nodes. */
export async function writeNodeAddresses(
  db: Writer,
  id: number,
  { smtp, capture }: NodeAddresses,
): Promise<void> {
  await db.query('update node set smtp_address = $2, capture_address = $3 where id = $1', [id, smtp, capture])
}

const reported = 'extract(epoch from n.seen_at)::text'
const reporting = `with seen as (
    update node set seen_at = now(), mark_word = coalesce($2, mark_word) where id = $1 returning id)
  select exists (select from seen) as "isKnown", (
    select coalesce(jsonb_agg(jsonb_build_object('id', n.id, 'reported', ${reported})), '[]')
    from node n where n.id <> $1 and ${hasLock}) as others`

/** A report under way has locked the row. Otherwise the row is locked here, so a report finds its connection ended. */
const endingSilent = `with silent as (
    select n.id from node n where n.id = $1 and ${reported} = $2 for update skip locked)
  select coalesce(bool_or(pg_terminate_backend(l.pid)), false) as "isEnded"
  from silent join pg_locks l on ${isNodeLock} and l.objid = silent.id`

interface Connected {
  lost: Promise<never>
  lose(error: Error): void
  heard(text: string): void
  joinedMs: number
}

/** After this long without an answer to a report, the connection counts as lost. Others count the node as dead by then. */
const reportTimeoutMs = 15_000

/** Makes one report at a time. */
function connectedNode(client: PoolClient, id: number, { lost, lose, heard, joinedMs }: Connected): Node {
  let [isReporting, hasOthers, reportedMs] = [false, true, joinedMs]
  client.on('notification', ({ payload = joined }) => {
    if (payload === joined) hasOthers = true
    else heard(payload)
  })
  const report = async (word: string | null) => {
    if (isReporting) return null
    isReporting = true
    const askedMs = performance.now()
    const asked = inTime(reporting, [id, word], reportTimeoutMs)
    const { rows } = await client.query<{ isKnown: boolean; others: NodeReport[] }>(asked)
    isReporting = false
    const [{ isKnown, others }] = rows as [(typeof rows)[0]]
    if (!isKnown) throw new Error('the row of this node was deleted')
    hasOthers = others.length > 0
    reportedMs = askedMs
    return others
  }
  return {
    id,
    lost,
    get hasOthers() {
      return hasOthers
    },
    get reportedMs() {
      return reportedMs
    },
    report: (word) =>
      report(word).catch((error) => {
        lose(error)
        return null
      }),
    endSilent: async (silent) => {
      const values = [silent.id, silent.reported]
      const { rows } = await client.query<{ isEnded: boolean }>(statement(endingSilent, values))
      return rows[0]!.isEnded
    },
    notify: async (text) => {
      const notifying = client.query(inTime('select pg_notify($1, $2)', [channel, text]))
      await notifying.catch((error) => {
        throw new DbFault(error)
      })
    },
    leave: () => leave(client, id),
  }
}

async function leave(client: PoolClient, id: number): Promise<void> {
  await client.query(inTime('delete from node where id = $1', [id])).catch(() => {})
  client.release(true)
}

function inTime(
  text: string,
  values: readonly unknown[],
  timeoutMs: number = silentMs,
): ReturnType<typeof statement> {
  return { ...statement(text, values), query_timeout: timeoutMs }
}

/**
 * Lists the addresses at which nodes take mail for our own domains, or capture mail, in the order to try. The node
 * `first` comes first, then the others in a random order, and those that hang last.
 */
export async function listNodeAddresses(
  db: Queryable,
  kind: 'smtp' | 'capture',
  first: number | null,
): Promise<string[]> {
  const rows = await db.query<{ address: string | null }>(
    `select case $1 when 'smtp' then n.smtp_address else n.capture_address end as address from node n where ${hasLock}
    order by n.id is distinct from $2, random()`,
    [kind, first],
  )
  return rows.flatMap(({ address }) => address ?? [])
}

/** Lists the marks of living nodes. */
export async function listNodeMarks(db: Queryable): Promise<NodeMark[]> {
  return await db.query(
    `select n.mark_folder as folder, n.mark_word as word from node n where n.mark_word is not null and ${hasLock}`,
  )
}

/** Lists settings of living nodes that differ from ours. A setting that only one of two releases knows is skipped. */
export async function listDisagreements(db: Queryable, own: AgreedSettings): Promise<Disagreement[]> {
  return await db.query(
    `select n.id as node, n.operator_address as operator, s.setting, s.value
    from node n cross join lateral jsonb_each_text(n.agreed) s (setting, value)
    where $1::jsonb ->> s.setting <> s.value and ${hasLock}
    order by n.id, s.setting`,
    [JSON.stringify(own)],
  )
}

export interface NodeRow extends NodeAddresses {
  id: number
  /** Null if the node did not report it. The same holds for the roles. */
  version: string | null
  roles: string[] | null
  operator: string | null
  host: string | null
  startedAt: Date
  /** Whether it holds its lock and was seen in the last 15 s. Otherwise it ended without deleting its row, or it hangs. */
  isAlive: boolean
  /** Destination queues that it owns. */
  queues: number
}

/** Whether any service has claimed its data folder. It does so before it takes mail, and releases the folder last. */
export async function isServed(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ isServed: boolean }>(
    `select exists (select from pg_locks l where ${isLockOf(lockClasses.folder)}) as "isServed"`,
  )
  return row!.isServed
}

/** Lists the numbers of the nodes that hold their locks, including nodes that hang. */
export async function listLivingNodes(db: Queryable): Promise<number[]> {
  const rows = await db.query<{ id: number }>(`select n.id from node n where ${hasLock} order by n.id`)
  return rows.map(({ id }) => id)
}

/** Lists every node that has not left, in the order in which they joined. */
export async function listNodes(db: Queryable): Promise<NodeRow[]> {
  return await db.query<NodeRow>(
    `select n.id, n.version, n.roles, n.operator_address as operator, n.host, n.smtp_address as smtp,
      n.capture_address as capture, n.started_at as "startedAt",
      not ${isSilent} and ${hasLock} as "isAlive",
      coalesce(o.queues, 0) as queues
    from node n left join (select owner, count(*) as queues from route where owner is not null group by owner) o
      on o.owner = n.id
    order by n.id`,
  )
}
