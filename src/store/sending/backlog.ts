// Counts the waiting work for operators, by index and only up to a bound.
import type { Queryable } from '../../postgres/db.ts'
import { countRows } from '../rows.ts'
import { skipScan } from './skip-scan.ts'

export interface Backlog {
  /** Waiting recipients by queue. The queues of single domains count as one. */
  waiting: { route: string; due: number; later: number }[]
  onWire: number
  /** When the longest waiting send was accepted. */
  oldestAcceptedAt: Date | null
  spooled: number
  oldestReceivedAt: Date | null
  webhookCalls: number
  oldestWebhookCallAt: Date | null
  unfolded: number
  /** When the oldest message that may not be in the word index yet was announced. */
  oldestUnindexedAt: Date | null
}

const waiting = `claim_epoch is null and status in ('pending', 'deferred')`
const firstAttempts = `webhook_delivery where status = 'pending' and next_attempt_at is null`
const firstMails = skipScan(
  'mails',
  'organization_id, received_at',
  'spool where true',
  'organization_id, due_at',
)
const firstCalls = skipScan('calls', 'webhook_id, created_at', firstAttempts, 'webhook_id, id')
const firstUnindexed = skipScan(
  'unindexed',
  'organization_id, announced_at',
  'search_waiting where true',
  'organization_id, ordinal',
)

/** Reads the backlog. Each count stops at `maxCounted`, which bounds the cost. */
export async function readBacklog(db: Queryable, at: Date, maxCounted: number): Promise<Backlog> {
  const [row] = await db.query<Backlog>(
    `select coalesce((select jsonb_agg(q) from (
        select coalesce(substring(route from '@.*$'), 'domain') as route,
          count(*) filter (where due_at <= $1) as due, count(*) filter (where due_at > $1) as later
        from (select route, due_at from delivery where ${waiting} limit $2) w group by 1) q), '[]') as waiting,
      (select count(*) from (select from delivery where claim_epoch is not null limit $2) w) as "onWire",
      (select s.created_at from (
        select submission_id from delivery where ${waiting} order by expires_at limit 1) w
        join submission s on s.id = w.submission_id) as "oldestAcceptedAt",
      (select count(*) from (select from spool limit $2) w) as spooled,
      (with recursive ${firstMails} select min(received_at) from mails) as "oldestReceivedAt",
      (select count(*) from (
        (select from ${firstAttempts} limit $2)
        union all (select from webhook_delivery where status = 'pending' and next_attempt_at is not null limit $2)) w
      ) as "webhookCalls",
      (with recursive ${firstCalls} select min(created_at) from calls) as "oldestWebhookCallAt",
      (select count(*) from (select from metric_delta limit $2) w) as unfolded,
      least((select n.created_at from outbox_cursor c cross join lateral (
          select created_at from outbox where (xact, seq) > (c.xact, c.seq) order by xact, seq limit 1
        ) n where c.name = 'search' and exists (select from searched_inbox)),
        (with recursive ${firstUnindexed} select min(announced_at) from unindexed)) as "oldestUnindexedAt"`,
    [at, maxCounted],
  )
  return row!
}

/** Returns the connections to this database by state, including those of other programs, and the server's maximum. */
export async function readConnections(
  db: Queryable,
): Promise<{ states: { state: string; count: number }[]; max: number }> {
  const [row] = await db.query<{ states: { state: string; count: number }[]; max: number }>(
    `select coalesce((select jsonb_agg(q) from (
        select coalesce(state, 'other') as state, count(*) as count from pg_stat_activity
        where datname = current_database() group by 1) q), '[]') as states,
      current_setting('max_connections')::integer as max`,
  )
  return row!
}

/** Counts the messages whose attachments wait for a scan, up to `maxCounted`. */
export async function countScans(db: Queryable, maxCounted: number): Promise<number> {
  return await countRows(db, '(select from scan limit $1) w', [maxCounted])
}
