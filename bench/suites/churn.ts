// Churn: how much room dead rows take while retention deletes as many messages as arrive, by the settings of autovacuum.

import type { SubmissionId } from '../../src/base/ids.ts'
import type { Blobs } from '../../src/blobs/blobs.ts'
import { OldMessages } from '../../src/flow/mailbox/old-messages.ts'
import { removeSettled } from '../../src/flow/upkeep/remove-settled.ts'
import { Db } from '../../src/postgres/db.ts'
import type { Scope } from '../../tests/support/until.ts'
import { temporaryFolder } from '../children.ts'
import { startPosthorn } from '../peers/posthorn.ts'
import { openSession, shareDatabase } from '../peers/posthorn-store.ts'
import type { Plan } from '../plan.ts'
import { formatFigures } from '../report.ts'
import type { Sample } from '../rounds.ts'
import { makeTemplates, Seeder } from './growth-store.ts'

const tables = ['message', 'raw', 'thread', 'submission', 'delivery', 'event']
const steps = 20

export async function benchChurn(scope: Scope, plan: Plan): Promise<void> {
  const messages = plan.messages ?? (plan.extent === 'quick' ? 4_000 : 200_000)
  const columns = []
  for (const name of ['a fifth', 'a fiftieth'] as const)
    columns.push({ name, sample: await measure(scope, messages, name) })
  const title = `churn, ${messages.toLocaleString('en')} messages replaced once, autovacuum at a share of dead rows`
  plan.print(`${formatFigures(title, columns)}\n`)
}

/** Deletes the oldest messages as fast as new ones come. Samples the tables after each step. */
async function measure(scope: Scope, messages: number, share: 'a fifth' | 'a fiftieth'): Promise<Sample> {
  const folder = temporaryFolder(scope, 'churn')
  const posthorn = await startPosthorn(scope, { roles: 'api,mx,jobs,delivery', dataFolder: folder })
  const filling = await makeTemplates(posthorn, folder)
  const connection = await shareDatabase(scope, posthorn.dataFolder)
  const session = await openSession(scope, connection)
  // Rounds as short in proportion as for a store fifty times as large.
  await session.query(`alter system set autovacuum_naptime = '1s'`)
  await session.query('select pg_reload_conf()')
  if (share === 'a fifth')
    for (const table of tables)
      await session.query(
        `alter table ${table} reset (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold)`,
      )
  const seeder = new Seeder(session, {
    here: filling.here,
    elsewhere: filling.elsewhere,
    messages: 2 * messages,
  })
  await seeder.seed(1, messages)
  await session.query('vacuum (analyze)')
  const db = new Db({ connection, maxConnections: 2 })
  scope.after(() => db.close())
  const read = async () => {
    const { rows } = await session.query(
      `select sum(pg_total_relation_size(oid))::float8 as size, sum(pg_stat_get_dead_tuples(oid))::float8 as dead
      from pg_class where relname = any($1)`,
      [tables],
    )
    return rows[0] as { size: number; dead: number }
  }
  const before = await read()
  const seen = [before]
  for (let step = 1; step <= steps; step++) {
    const [first, last] = [(step - 1) * (messages / steps) + 1, step * (messages / steps)]
    await seeder.seed(messages + first, messages + last)
    const { rows } = await session.query(
      'select extract(epoch from created_at)::float8 * 1000 as "atMs" from message order by id desc offset $1 limit 1',
      [messages],
    )
    await removeUntil(db, rows[0].atMs)
    seen.push(await read())
  }
  const most = (of: (one: { size: number; dead: number }) => number) => Math.max(...seen.map(of))
  return {
    'size before, MiB': before.size / 2 ** 20,
    'largest size, MiB': most(({ size }) => size) / 2 ** 20,
    'growth, %': (most(({ size }) => size) / before.size - 1) * 100,
    'most dead rows': most(({ dead }) => dead),
  }
}

/** Removes what is older than a time, as the service does. */
async function removeUntil(db: Db, untilMs: number): Promise<void> {
  const clock = { nowMs: () => untilMs, now: () => new Date() } as never
  // Short mail has no blobs.
  const old = new OldMessages({ db, clock, blobs: {} as Blobs }, 0)
  while (await old.removeNext(100));
  for (let after: SubmissionId | null = null; ; ) {
    after = await removeSettled({ db, clock, blobs: {} as Blobs }, 0, 500, after)
    if (after === null) return
  }
}
