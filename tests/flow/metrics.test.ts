// Metrics are exact for sent, received and deferred mail; operators see series, and logs show a mail. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import type { OrganizationId } from '../../src/base/ids.ts'
import { cancelQueue } from '../../src/flow/delivering/end-deliveries.ts'
import { readMetrics } from '../../src/flow/metrics/read-metrics.ts'
import { foldMetrics } from '../../src/flow/upkeep/fold-metrics.ts'
import type { Db } from '../../src/postgres/db.ts'
import { foldDeltas } from '../../src/store/events/metrics.ts'
import type { Api, Inbox } from '../support/api.ts'
import { makePlace, send, startNode, type TestCaller, type TestNode, untilStates } from '../support/node.ts'
import { type Rule, startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

const hourMs = 3_600_000

interface Totals {
  accepted: number
  recipients: number
  delivered: number
  deferred: number
  bounced: number
  failed: number
  suppressed: number
  complained: number
  received: number
}

interface Metrics {
  windowHours: number
  from: string
  to: string
  totals: Totals
  rates: { delivery: number | null; bounce: number | null; complaint: number | null }
  latencyMs: { p50: number | null; p95: number | null; p99: number | null }
  series: ({ at: string } & Partial<Totals>)[]
  topDestinations: {
    domain: string
    recipients: number
    delivered: number
    bounced: number
    deferred: number
  }[]
}

interface Stage {
  node: TestNode
  db: Db
  caller: TestCaller
  api: Api
  inbox: Inbox
}

/** Accepts recipients that begin with `ok`, refuses `bad` and defers `busy`. */
const rule: Rule = ({ stage, command }) => {
  if (stage !== 'rcpt') return null
  if (command.includes('<bad')) return '550 5.1.1 no such user'
  return command.includes('<busy') ? '450 4.2.1 not now' : null
}
const place = await makePlace({ after })
const sink = await startSink(place, { rule })
const node = await startNode(place, { env: { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url } })

async function setStage(): Promise<Stage> {
  const { clock } = node.foundation
  // An hour that ends during the test would end the window.
  clock.advance(hourMs - (clock.nowMs() % hourMs))
  const caller = await node.createCaller()
  return { node, db: node.foundation.db, caller, api: caller.api, inbox: await caller.api.createInbox() }
}

/** Pseudo-random numbers, the same in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return Math.floor((state / 2 ** 31) * below)
  }
}

/** Waits until nothing is in transfer, due or unfiled. */
async function untilQuiet({ node, db }: Stage): Promise<void> {
  await until('everything to come to rest', async () => {
    const [row] = await db.query<{ busy: number }>(
      `select (select count(*) from delivery where claim_epoch is not null)
        + (select count(*) from delivery where status in ('pending', 'deferred') and (due_at <= $1 or expires_at <= $1))
        + (select count(*) from spool) as busy`,
      [node.foundation.clock.now()],
    )
    return row!.busy === 0
  })
}

async function recount({ db, caller }: Stage, { from, to }: Metrics): Promise<Totals> {
  const [row] = await db.query<Totals>(
    `with happened as (select type from event where organization_id = $1 and at >= $2 and at < $3),
    sent as (select id from submission where organization_id = $1 and created_at >= $2 and created_at < $3)
    select (select count(*) from sent) as accepted,
      (select count(*) from delivery where submission_id in (select id from sent)) as recipients,
      (select count(*) from happened where type = 'delivered') as delivered,
      (select count(*) from happened where type = 'deferred') as deferred,
      (select count(*) from happened where type = 'bounced') as bounced,
      (select count(*) from happened where type in ('failed', 'cancelled')) as failed,
      (select count(*) from happened where type = 'suppressed') as suppressed,
      (select count(*) from happened where type = 'complained') as complained,
      (select count(*) from message where organization_id = $1 and direction = 'inbound'
        and created_at >= $2 and created_at < $3) as received`,
    [caller.organizationId, new Date(from), new Date(to)],
  )
  return row!
}

async function recountDestinations({ db, caller }: Stage, { from, to }: Metrics) {
  return await db.query(
    `select domain, sum(recipients) as recipients, sum(delivered) as delivered, sum(bounced) as bounced,
      sum(deferred) as deferred
    from (
      select d.domain, 1 as recipients, 0 as delivered, 0 as bounced, 0 as deferred
      from submission s join delivery d on d.submission_id = s.id
      where s.organization_id = $1 and s.created_at >= $2 and s.created_at < $3
      union all
      select split_part(recipient, '@', 2), 0, (type = 'delivered')::integer, (type = 'bounced')::integer,
        (type = 'deferred')::integer
      from event where organization_id = $1 and at >= $2 and at < $3
    ) happened group by domain order by 2 desc, sum(delivered) + sum(bounced) + sum(deferred) desc, domain limit 10`,
    [caller.organizationId, new Date(from), new Date(to)],
  )
}

/** Compares every window with a recount of the tables, and the series with the totals. */
async function compare(stage: Stage, name: string): Promise<Metrics> {
  const windows: Metrics[] = []
  for (const hours of [1, 24, 72, 73, 720]) {
    const metrics = await stage.api.want<Metrics>(`/v1/metrics/delivery?hours=${hours}`)
    const title = `${name}, ${hours} hours`
    assert.deepEqual(metrics.totals, await recount(stage, metrics), title)
    assert.deepEqual(metrics.topDestinations, await recountDestinations(stage, metrics), title)
    const lastHour = Date.parse(metrics.from) + (hours - 1) * hourMs
    const now = Date.parse(metrics.to)
    assert.ok(now >= lastHour && now < lastHour + hourMs && now <= stage.node.foundation.clock.nowMs(), title)
    if (hours <= 72) assert.equal(metrics.series.length, hours, title)
    for (const fact of ['accepted', 'delivered', 'deferred', 'bounced', 'failed', 'received'] as const) {
      const total: number = metrics.series.reduce((all, entry) => all + entry[fact]!, 0)
      assert.equal(total, metrics.totals[fact], `${title}: the series of ${fact}`)
    }
    for (const { at } of metrics.series)
      assert.ok(at >= metrics.from && at < metrics.to, `${title}: ${at} is within`)
    windows.push(metrics)
  }
  return windows.at(-1)!
}

async function readSeries(): Promise<{ type: string; lines: string[] }> {
  const { host, port } = node.app.listening.operator
  const response = await fetch(`http://${host}:${port}/metrics`)
  assert.equal(response.status, 200)
  const lines = (await response.text()).split('\n')
  return { type: response.headers.get('content-type')!, lines: lines.filter((line) => !line.startsWith('#')) }
}

function seriesValue(lines: string[], name: string): number {
  const line = lines.find((candidate) => candidate.startsWith(`${name} `))
  assert.ok(line, `there is ${name}`)
  return Number(line.split(' ')[1])
}

/** The parsed log lines that name the id. */
function linesOf(id: string): Record<string, unknown>[] {
  const lines = node.log().split('\n')
  return lines.filter((line) => line.includes(`"${id}"`)).map((line) => JSON.parse(line))
}

test('Prometheus: few series show waiting mail, finished work and the database’s state', async () => {
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  const before = seriesValue((await readSeries()).lines, 'posthorn_sends_accepted_total')
  const sent = await Promise.all(Array.from({ length: 30 }, (_, i) => send(api, inbox, [`busy@d${i}.test`])))
  for (const { submission } of sent) await untilStates(api, submission.id, 'deferred')
  // Gauges are cached for some seconds.
  const { type, lines } = await until('the gauges to be gathered again', async () => {
    const seen = await readSeries()
    const name = 'posthorn_queue_recipients{class="relay",when="later"}'
    return seriesValue(seen.lines, name) === 30 ? seen : null
  })
  assert.match(type, /^text\/plain/)
  assert.equal(seriesValue(lines, 'posthorn_sends_accepted_total') - before, 30)
  assert.equal(seriesValue(lines, 'posthorn_database_up'), 1)
  assert.ok(seriesValue(lines, 'posthorn_queue_oldest_seconds') > 0)
  assert.ok(seriesValue(lines, 'posthorn_attempts_total{class="relay",outcome="deferred"}') >= 30)
  assert.ok(seriesValue(lines, 'posthorn_database_connections{state="idle"}') >= 0)
  assert.ok(seriesValue(lines, 'nodejs_eventloop_lag_p99_seconds') >= 0)
  assert.ok(lines.length < 2000, `${lines.length} series`)
  assert.doesNotMatch(lines.join('\n'), /d1\.test/)
})

test('every series of the dashboard exists', async () => {
  const { host, port } = node.app.listening.operator
  const text = await (await fetch(`http://${host}:${port}/metrics`)).text()
  const known = new Set(text.match(/^# TYPE (\S+)/gm)?.map((line) => line.split(' ')[2]))
  const dashboard = readFileSync(new URL('../../deploy/grafana/posthorn.json', import.meta.url), 'utf8')
  const { panels } = JSON.parse(dashboard) as { panels: { targets?: { expr: string }[] }[] }
  const named = panels.flatMap(({ targets = [] }) =>
    targets.flatMap(({ expr }) => expr.match(/\b(?:posthorn|nodejs|process)_[a-z0-9_]+/g) ?? []),
  )
  assert.ok(named.length >= 15)
  const unknown = named.filter(
    (name) => !known.has(name) && !known.has(name.replace(/_(?:bucket|sum|count)$/, '')),
  )
  assert.deepEqual(unknown, [])
})

test("a message's life can be followed in the logs by its id", async () => {
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  const { message, submission } = await send(api, inbox, [inbox.address])
  await untilStates(api, submission.id, 'delivered')
  const [accepted] = linesOf(message.id)
  assert.equal(accepted?.['submission'], submission.id)
  const told = await until('the attempt to be logged', () => {
    const lines = linesOf(submission.id)
    return lines.length === 2 ? lines : null
  })
  assert.deepEqual(
    told.map(({ msg, queueId }) => [msg, queueId]),
    ['send accepted', 'delivery attempted'].map((msg) => [msg, accepted['queueId']]),
  )
  assert.equal(told[1]?.['status'], 'delivered')
  const arrived = await until('the mail to be filed', async () => {
    const found = (await api.exported(inbox.id)).find(({ direction }) => direction === 'inbound')
    const lines = found ? linesOf(found.id) : []
    return lines.length === 2 ? lines : null
  })
  assert.deepEqual(
    arrived.map(({ msg }) => msg),
    ['mail received', 'mail filed'],
  )
})

test('latencies differ by at most 9.1 %, and rates are null without a denominator', async () => {
  const stage = await setStage()
  const { db, caller, api, inbox } = stage
  const empty = await api.want<Metrics>('/v1/metrics/delivery')
  assert.equal(empty.windowHours, 24)
  assert.deepEqual(empty.rates, { delivery: null, bounce: null, complaint: null })
  assert.deepEqual(empty.latencyMs, { p50: null, p95: null, p99: null })
  assert.deepEqual(empty.topDestinations, [])
  for (let count = 0; count < 9; count++) await send(api, inbox, [`ok${count}@far.test`])
  await send(api, inbox, ['bad@far.test'])
  await untilQuiet(stage)
  const { rates, latencyMs } = await api.want<Metrics>('/v1/metrics/delivery')
  assert.deepEqual(rates, { delivery: 0.9, bounce: 0.1, complaint: 0 })
  const took = await db.query<{ ms: number }>(
    `select (extract(epoch from e.at - s.created_at) * 1000)::float8 as ms
    from event e join submission s on s.id = e.submission_id
    where e.type = 'delivered' and e.organization_id = $1 order by ms`,
    [caller.organizationId],
  )
  const wanted = { p50: took[4]!.ms, p95: took[8]!.ms, p99: took[8]!.ms }
  for (const name of ['p50', 'p95', 'p99'] as const) {
    const off = Math.abs(latencyMs[name]! - wanted[name])
    assert.ok(off <= wanted[name] * 0.091 + 0.5, `${name}: ${latencyMs[name]} for ${wanted[name]}`)
  }
})

test('an organization that writes to thousands of domains keeps only the largest as separate series', async () => {
  const stage = await setStage()
  const { db, caller, node } = stage
  const organizationId = caller.organizationId as OrganizationId
  const at = node.foundation.clock.now()
  for (let round = 0; round < 4; round++) {
    await db.query(
      // Twelve domains with heavy traffic, and a thousand others.
      `insert into metric_delta (organization_id, at, counts)
      select $1, $2, array_agg(row('recipients', 'inbox.test', domain, null, amount)::metric_count)
      from (
        select 'd' || n || '.test' as domain, 100 - n as amount from generate_series(1, 12) n
        union all select 'o' || n || '.test', 1 from generate_series(1000 * $3::integer, 1000 * $3 + 999) n
      ) sent`,
      [organizationId, at, round],
    )
    await foldDeltas(db.writer, { wanted: 100, maxDestinations: 50 })
    const [row] = await db.query<{ names: number }>(
      `select max(names) as names from (
        select count(*) as names from metric where kind = 'destination' and organization_id = $1 group by grain, at) n`,
      [organizationId],
    )
    assert.ok(row!.names <= 50, `${row!.names} destinations are kept`)
  }
  const { topDestinations, totals } = await readMetrics(node.foundation, organizationId, 24)
  assert.deepEqual(
    topDestinations.map(({ domain }) => domain),
    Array.from({ length: 10 }, (_, i) => `d${i + 1}.test`),
  )
  assert.ok(totals.recipients > 4000)
})

// Runs last: it moves the clock by weeks, and the tables must be empty at its end.
test('metrics equal a recount of the tables at every moment, folded or not', async () => {
  const stage = await setStage()
  const { node, db, api, inbox } = stage
  const pick = numbers(7)
  const { clock } = node.foundation
  for (let round = 0; round < 5; round++) {
    await api.want('/v1/suppressions', {
      method: 'POST',
      status: 201,
      body: { email: `ok9@d${round}.test` },
    })
    for (let count = 0; count < 6; count++) {
      const to = Array.from({ length: pick(4) }, (_, i) => {
        const kind = ['ok', 'ok', 'bad', 'busy'][pick(4)]
        return `${kind}${i}@d${pick(12)}.test`
      })
      await send(api, inbox, [
        `ok@d${count}.test`,
        `ok9@d${count}.test`,
        ...to,
        ...(pick(4) === 0 ? [inbox.address] : []),
      ])
    }
    const raw = Buffer.from('From: someone@far.test\r\nSubject: Test\r\n\r\nHello.\r\n')
    const { reply } = await sendMail(node.smtp, { from: 'someone@far.test', to: inbox.address, raw })
    assert.match(reply, /^250/)
    await untilQuiet(stage)
    await compare(stage, `round ${round}`)
    clock.advance((5 + pick(6)) * hourMs)
  }
  await untilQuiet(stage)
  await cancelQueue(node.foundation, '@relay')
  await send(api, inbox, ['busy@late.test'])
  await untilQuiet(stage)
  await compare(stage, 'after cancelling')
  clock.advance(80 * hourMs)
  await untilQuiet(stage)
  const before = await compare(stage, 'after expiry')
  for (const fact of Object.keys(before.totals) as (keyof Totals)[])
    if (fact !== 'complained') assert.ok(before.totals[fact] > 0, `some ${fact}`)
  await until('all to be folded', async () => {
    await foldMetrics(node.foundation)
    return (await db.query('select from metric_delta limit 1')).length === 0
  })
  const after = await compare(stage, 'after folding')
  assert.deepEqual({ ...after, to: before.to }, before)
  clock.advance(40 * 24 * hourMs)
  await foldMetrics(node.foundation)
  assert.deepEqual(await db.query('select from metric'), [])
})
