// Trouble at one destination stays there: a tarpit delays no other mail, and a dead destination costs no write per message.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import type { Acceptance, Api, Inbox } from '../support/api.ts'
import { DnsServer } from '../support/dns-server.ts'
import { unindexed } from '../support/indexed.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'

const queued = 2000

test('check 49: a tarpitting destination with 2,000 queued messages delays another by less than a second', async (t) => {
  const { slow, fast, api, inbox } = await setStage(t)
  // No reply after RCPT for the whole test.
  slow.rule = ({ stage }) => (stage === 'rcpt' ? new Promise(() => {}) : null)
  const before = await latencies(api, inbox, fast)
  await sendMany(api, inbox, 'slow.test', queued)
  await until('the tarpit to hold connections', () => slow.open > 0)
  const during = await latencies(api, inbox, fast)
  const delayMs = Math.max(...during) - median(before)
  t.diagnostic(
    `quiet ${brief(before)}, beside the tarpit ${brief(during)}, delayed by ${Math.round(delayMs)} ms at most`,
  )
  assert.equal(slow.copies.length, 0)
  assert.ok(delayMs < 1000, `delayed by ${delayMs} ms`)
})

test('a dead destination costs no write per message while it is down', async (t) => {
  const { posthorn, slow, fast, api, inbox } = await setStage(t)
  slow.rule = ({ stage }) => (stage === 'banner' ? 'cut' : null)
  await sendMany(api, inbox, 'slow.test', queued)
  await until('the queue to notice', () => slow.connections >= 2)
  const connectionsBefore = slow.connections
  const rows = await rowsWrittenDuring(posthorn, () =>
    until('three more tries', () => slow.connections >= connectionsBefore + 3, { timeoutMs: 60_000 }),
  )
  const tries = slow.connections - connectionsBefore
  t.diagnostic(`${rows} rows written in ${tries} connections with ${queued} messages waiting`)
  assert.ok(rows < 100, `${rows} rows written`)

  // After it is up again, everything arrives once.
  slow.rule = () => null
  await until('everything to arrive', () => slow.copies.length >= queued, { timeoutMs: 120_000 })
  assert.equal(new Set(slow.copies.map(({ messageId }) => messageId)).size, queued)
  assert.equal(slow.copies.length, queued)
  assert.ok((await latencies(api, inbox, fast)).length > 0)
})

interface Stage {
  posthorn: Posthorn
  slow: Sink
  fast: Sink
  api: Api
  inbox: Inbox
}

async function setStage(t: TestContext): Promise<Stage> {
  const fast = await startSink(t, { host: '127.0.0.3' })
  // All remote MX hosts use one port, so the two differ by their address.
  const slow = await startSink(t, { host: '127.0.0.2', port: fast.port })
  const dns = await DnsServer.start({
    'slow.test': { MX: [[10, 'mx.slow.test']] },
    'mx.slow.test': { A: [slow.host] },
    'fast.test': { MX: [[10, 'mx.fast.test']] },
    'mx.fast.test': { A: [fast.host] },
  })
  t.after(() => dns.close())
  const posthorn = await startPosthorn(t, {
    env: {
      POSTHORN_DELIVERY: 'direct',
      POSTHORN_DNS: dns.address,
      POSTHORN_MX_PORT: String(fast.port),
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
      POSTHORN_RETRY_SCHEDULE: '1s',
    },
  })
  const { api } = await createCaller(posthorn)
  return { posthorn, slow, fast, api, inbox: await api.createInbox() }
}

async function send(api: Api, inbox: Inbox, to: string): Promise<Acceptance> {
  const body = { to: [{ email: to }], subject: 'Queue', text: 'One of many.' }
  const path = `/v1/inboxes/${inbox.id}/messages`
  return api.want(path, {
    method: 'POST',
    status: 202,
    idempotencyKey: randomUUID(),
    body,
  })
}

async function sendMany(api: Api, inbox: Inbox, domain: string, count: number): Promise<void> {
  const numbers = Array.from({ length: count }, (_, number) => number).values()
  const worker = async () => {
    for (const number of numbers) await send(api, inbox, `r${number}@${domain}`)
  }
  await Promise.all(Array.from({ length: 32 }, worker))
}

/** Milliseconds from the request to the arrival at the sink, for ten messages one after another. */
async function latencies(api: Api, inbox: Inbox, sink: Sink): Promise<number[]> {
  const found: number[] = []
  for (let number = 0; number < 10; number++) {
    const startMs = Date.now()
    const { message } = await send(api, inbox, `l${number}@fast.test`)
    const copy = await until('the message to arrive', () => sink.copiesOf(message.internetMessageId)[0], {
      everyMs: 5,
    })
    found.push(copy.atMs - startMs)
  }
  return found
}

const median = (values: number[]): number => values.toSorted((one, other) => one - other)[values.length >> 1]!

const brief = (values: number[]): string => `median ${median(values)} ms, max ${Math.max(...values)} ms`

/**
 * Rows in all tables whose newest version was written while `wait` lasted. This is exact at once. The counters of
 * pg_stat_user_tables may be ten seconds late.
 */
async function rowsWrittenDuring(posthorn: Posthorn, wait: () => Promise<unknown>): Promise<number> {
  const client = new pg.Client(posthorn.database())
  await client.connect()
  try {
    // Indexing writes a row for each message, whatever happens to its delivery.
    await until('all to be searchable', async () => (await client.query(unindexed)).rows.length === 0)
    const { rows: start } = await client.query('select pg_snapshot_xmax(pg_current_snapshot())::text as id')
    await wait()
    const named = 'select relid::regclass::text as name from pg_stat_user_tables'
    const { rows: tables } = await client.query<{ name: string }>(named)
    let count = 0
    for (const { name } of tables) {
      const newer = `select count(*)::integer as count from ${name} where xmin::text::bigint >= $1`
      count += (await client.query(newer, [start[0].id])).rows[0].count
    }
    return count
  } finally {
    await client.end()
  }
}
