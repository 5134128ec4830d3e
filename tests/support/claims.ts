// Claims under the number of a live node, for work that a test does itself.
import type { Clock } from '../../src/base/clock.ts'
import { Claims } from '../../src/flow/claims.ts'
import type { Db } from '../../src/postgres/db.ts'
import { isNodeLock, joinNodes } from '../../src/store/nodes.ts'
import type { WorkKind } from '../../src/store/work.ts'
import { type Scope, until } from './until.ts'

export interface JoinedNode {
  id: number
  claims(kind: WorkKind): Claims
  /** The node's lock is released by then. */
  leave(): Promise<void>
}

/** Joins as one more node. It leaves before the scope ends. */
export async function joinAsNode(scope: Scope, { db, clock }: { db: Db; clock: Clock }): Promise<JoinedNode> {
  const node = await joinNodes(db, { smtp: null, capture: null, mark: null, program: null }, new Date())
  // The other nodes count a silent one as dead.
  const reporting = setInterval(() => void node.report(null), 1_000)
  let leaving: Promise<void> | null = null
  const end = () => {
    clearInterval(reporting)
    return (leaving ??= node.leave())
  }
  scope.after(end)
  const isGone = async () => {
    const rows = await db.query(`select from pg_locks l where ${isNodeLock} and l.objid = $1`, [node.id])
    return rows.length === 0
  }
  const leave = async () => {
    await end()
    await until('its lock to be gone', isGone)
  }
  return { id: node.id, leave, claims: (kind) => new Claims({ db, clock, nodeId: () => node.id }, kind) }
}

/** Adds placeholder work. No test reads its content, and all of it is deleted at the end. */
export async function addWork(
  { db, clock }: { db: Db; clock: Clock },
  kind: WorkKind,
  rows: { id: string; organization: string; failures?: number; size?: number }[],
): Promise<void> {
  const insert = {
    mail: `insert into spool (id, organization_id, inbox_id, raw_id, size_bytes, envelope, received_at, failures, due_at)
      select id, organization, '', gen_random_uuid(), size, '{}', $2, failures, $2`,
    report: `insert into kept_mail (id, purpose, address, organization_id, raw_id, size_bytes, envelope, received_at, failures)
      select id, 'return_path', '', organization, gen_random_uuid(), size, '{}', $2, failures`,
    scan: 'insert into scan (message_id, organization_id, failures, due_at) select id, organization, failures, $2::timestamptz',
  }
  await db.query(
    `${insert[kind]} from jsonb_to_recordset($1) as x(id text, organization uuid, failures integer, size integer)`,
    [JSON.stringify(rows.map((row) => ({ failures: 0, size: 1, ...row }))), clock.now()],
  )
}
