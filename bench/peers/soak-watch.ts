// Watches a service during a soak: memory, heap, buffers, handles, connections, sizes of tables and indexes, and objects on S3.
import { readdirSync, readFileSync } from 'node:fs'
import type pg from 'pg'
import type { Sample } from '../rounds.ts'
import { memoryOf } from '../usage.ts'
import type { Posthorn } from './posthorn.ts'
import type { S3 } from './s3.ts'

/**
 * Tables whose rows are kept by rule for longer than a soak, even if their mail is deleted: a week or more
 * (docs/operating.md, retention). They grow by a fixed amount per mail.
 */
const recordTables = [
  'submission',
  'delivery',
  'event',
  'outbox',
  'webhook_delivery',
  'message_tombstone',
  'metric',
]

const sizes = `select
  sum(pg_table_size(c.oid)) filter (where c.relname <> all ($1)) / 1e6 as mail_tables,
  sum(pg_indexes_size(c.oid)) filter (where c.relname <> all ($1)) / 1e6 as mail_indexes,
  sum(pg_table_size(c.oid)) filter (where c.relname = any ($1)) / 1e6 as record_tables,
  sum(pg_indexes_size(c.oid)) filter (where c.relname = any ($1)) / 1e6 as record_indexes,
  (select count(*) from pg_stat_activity where backend_type = 'client backend') as connections,
  (select count(*) from message) as messages
  from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'r' and n.nspname = 'public'`

/** The operator's metrics of memory that only a collection frees. Buffers are outside the heap. */
const collected = { heap: 'nodejs_heap_size_used_bytes', buffers: 'nodejs_external_memory_bytes' }

/** The figures of one moment. Sizes are in MB. */
export async function takeSample(posthorn: Posthorn, session: pg.Client, s3: S3): Promise<Sample> {
  const sample: Sample = {}
  for (const { name, pid } of posthorn.processes()) {
    sample[`RSS of ${name}`] = memoryOf([pid]).rssBytes / 1e6
    sample[`handles of ${name}`] = readdirSync(`/proc/${pid}/fd`).length
    sample[`threads of ${name}`] = Number(
      /^Threads:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1],
    )
  }
  const metrics = await (await fetch(`${posthorn.operator}/metrics`)).text()
  for (const [figure, metric] of Object.entries(collected))
    for (const { worker, bytes } of readBytes(metrics, metric)) sample[`${figure} of ${worker}`] = bytes / 1e6
  sample['PSS of PostgreSQL'] = memoryOf(posthorn.databasePids()).pssBytes / 1e6
  const { rows } = await session.query(sizes, [recordTables])
  const { mail_tables, mail_indexes, record_tables, record_indexes, connections, messages } = rows[0]
  sample['connections'] = Number(connections)
  sample['stored messages'] = Number(messages)
  sample['tables of mail'] = Number(mail_tables)
  sample['indexes of mail'] = Number(mail_indexes)
  sample['tables of records'] = Number(record_tables)
  sample['indexes of records'] = Number(record_indexes)
  sample['objects on S3'] = s3.countObjects()
  return sample
}

/** Returns the metric's value of each process. */
function readBytes(metrics: string, metric: string): { worker: string; bytes: number }[] {
  const lines = metrics.matchAll(new RegExp(`^${metric}(?:\\{worker="(\\w+)"\\})? (\\S+)$`, 'gm'))
  return [...lines].map(([, worker, value]) => ({ worker: nameOf(worker), bytes: Number(value) }))
}

function nameOf(worker: string | undefined): string {
  if (worker === undefined) return 'service'
  return worker === 'supervisor' ? worker : `worker ${worker}`
}
