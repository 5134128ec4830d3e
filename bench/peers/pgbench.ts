// PostgreSQL's own ceiling: pgbench with one prepared insert of the same body per transaction.
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { runChild } from '../children.ts'

/** The part of `pg.PoolConfig` that reaches a server over its socket. */
export interface Database {
  host: string
  port: number
  user: string
  database: string
}

interface PgbenchOptions {
  folder: string
  body: string
  clients: number
  /** Rounded to whole seconds, at least one. */
  durationMs: number
}

const path = '/usr/bin/pgbench'

/** Inserts `body` as fast as `clients` can. Returns the number of transactions and their rate per second. */
export async function runPgbench(
  database: Database,
  options: PgbenchOptions,
): Promise<{ transactions: number; perSecond: number }> {
  const { folder, body, clients, durationMs } = options
  const script = join(folder, 'insert.sql')
  writeFileSync(
    script,
    `insert into pgbench_send values (gen_random_uuid(), '${body.replaceAll("'", "''")}');\n`,
  )
  const shape = ['-n', '-M', 'prepared', '-c', `${clients}`, '-j', '2', '-f', script]
  const time = ['-T', `${Math.max(1, Math.round(durationMs / 1000))}`]
  const target = ['-h', database.host, '-p', `${database.port}`, '-U', database.user, database.database]
  const report = await runChild(path, [...shape, ...time, ...target])
  const read = (pattern: RegExp) => Number(pattern.exec(report)?.[1])
  return { transactions: read(/actually processed: (\d+)/), perSecond: read(/^tps = ([\d.]+)/m) }
}

/** Creates pgbench's table. Throws if the program is missing. */
export async function preparePgbench(database: Database): Promise<void> {
  if (!existsSync(path)) throw new Error('missing: run bench/peers/install.sh')
  const client = new pg.Client(database)
  await client.connect()
  await client.query('create table if not exists pgbench_send (id uuid primary key, body text not null)')
  await client.end()
}

/** Returns the installed version, or why there is none. */
export async function pgbenchVersion(): Promise<string> {
  return existsSync(path)
    ? (/\d+\.\d+/.exec(await runChild(path, ['--version']))?.[0] ?? 'unknown')
    : 'missing'
}
