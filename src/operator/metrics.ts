// Prometheus metrics on the private listener: counters of this process, and the backlog in the store.
import {
  collectDefaultMetrics,
  Gauge,
  type Metric,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client'
import type { Clock } from '../base/clock.ts'
import { classOf, registry } from '../base/meters.ts'
import type { Db } from '../postgres/db.ts'
import { type DatabaseHealth, readDatabaseHealth } from '../store/database-health.ts'
import { type Backlog, readBacklog, readConnections } from '../store/sending/backlog.ts'

export interface OperatorMetricsDeps {
  db: Db
  clock: Clock
  /** Returns the metrics of every process of the service. Null: this is the only one. */
  collectMetrics: (() => Promise<WorkerMetrics[]>) | null
}

/** One metric of a process, with its series. */
export type WorkerMetric = MetricObjectWithValues<MetricValue<string>>

/** The metrics of one process of a service, by the value of the label `worker`. */
export interface WorkerMetrics {
  worker: string
  metrics: WorkerMetric[]
}

/** Returns the metrics of this process that need no database. */
export async function readOwnMetrics(): Promise<WorkerMetric[]> {
  return await registry.getMetricsAsJSON()
}

/** Counting stops here to save time. Above it, the exact number does not matter. */
const maxCounted = 1_000_000
/** Collected values are kept for at least `keptMs`, and for `keptTimesTook` times as long as collecting took. */
const keptMs = 5_000
const keptTimesTook = 50

const classes = ['domain', 'local', 'relay', 'capture']
const states = ['active', 'idle', 'idle in transaction', 'other']

// The event loop, garbage collector and heap belong to the process, however many nodes a test runs in it.
collectDefaultMetrics({ register: registry })

/** An answer that is not JSON. */
export class Text {
  readonly type: string
  readonly text: string

  constructor(type: string, text: string) {
    this.type = type
    this.text = text
  }
}

/** One metric and its series with their labels. For a histogram, the label `of` distinguishes sum and count. */
export interface MetricNumbers {
  name: string
  help: string
  kind: string
  values: { labels: Record<string, string>; value: number }[]
}

interface SeriesValue {
  labels: Record<string, string | number | undefined>
  value: number
  metricName?: string
}

function labelsOf(
  labels: SeriesValue['labels'],
  metricName: string | undefined,
  name: string,
): Record<string, string> {
  const texts = Object.entries(labels).map(([label, value]) => [label, String(value)])
  const part =
    metricName === undefined || metricName === name ? [] : [['of', metricName.slice(name.length + 1)]]
  return Object.fromEntries([...texts, ...part])
}

/** Answers `/metrics`: the text and its type. An unreachable store shows as `posthorn_database_up 0`, not as a failure. */
export class OperatorMetrics {
  readonly #deps: OperatorMetricsDeps
  readonly #registry = new Registry()
  readonly #gauges = gaugesIn(this.#registry)
  /** Empty while the upkeep cannot be read, because old values would be wrong. */
  #upkeep = new Registry()
  /** Gauges of this process, unlike those of the store, which are the same in every process. */
  readonly #own = new Registry()
  readonly #pool = poolGaugeIn(this.#own)
  #collecting: Promise<void> | null = null
  #keptUntilMs = Number.NEGATIVE_INFINITY

  constructor(deps: OperatorMetricsDeps) {
    this.#deps = deps
  }

  async text(): Promise<Text> {
    const merged = await this.#gauged()
    return new Text(merged.contentType, await merged.metrics())
  }

  /** Metrics for people: without the buckets of histograms. */
  async numbers(): Promise<MetricNumbers[]> {
    const merged = await this.#gauged()
    return (await merged.getMetricsAsJSON()).map(({ name, help, type, values }) => ({
      name,
      help,
      kind: String(type),
      values: (values as SeriesValue[])
        .filter(({ metricName }) => !metricName?.endsWith('_bucket'))
        .map(({ labels, value, metricName }) => ({ labels: labelsOf(labels, metricName, name), value })),
    }))
  }

  async #gauged(): Promise<Registry> {
    if (performance.now() >= this.#keptUntilMs)
      await (this.#collecting ??= this.#collect().finally(() => (this.#collecting = null)))
    const { collectMetrics } = this.#deps
    const own = collectMetrics ? byWorker(await collectMetrics()) : this.#ownRegistry()
    return Registry.merge([own, this.#registry, this.#upkeep])
  }

  /** Returns the metrics of this process, without those of the store. */
  async own(): Promise<WorkerMetric[]> {
    return await this.#ownRegistry().getMetricsAsJSON()
  }

  #ownRegistry(): Registry {
    for (const [state, count] of Object.entries(this.#deps.db.pool)) this.#pool.set({ state }, count)
    return Registry.merge([registry, this.#own])
  }

  async #collect(): Promise<void> {
    const { db, clock } = this.#deps
    const startedMs = performance.now()
    try {
      await db.query('select 1')
      this.#gauges.roundTrip.set((performance.now() - startedMs) / 1000)
      this.#show(await readBacklog(db, clock.now(), maxCounted))
      const connections = await readConnections(db)
      const counts = new Map(connections.states.map(({ state, count }) => [state, count]))
      for (const state of states) this.#gauges.connections.set({ state }, counts.get(state) ?? 0)
      this.#gauges.maxConnections.set(connections.max)
      this.#gauges.up.set(1)
      // The database has answered. The doctor says why its upkeep cannot be read.
      this.#upkeep = await readDatabaseHealth(db).then(registerHealth, () => new Registry())
    } catch {
      this.#upkeep = new Registry()
      // Not logged here: the fault is the measured value, and code that needs the store logs it.
      this.#gauges.up.set(0)
    }
    const tookMs = performance.now() - startedMs
    this.#keptUntilMs = performance.now() + Math.max(keptMs, tookMs * keptTimesTook)
  }

  #show(backlog: Backlog): void {
    const gauges = this.#gauges
    const age = (at: Date | null) => (at ? Math.max(0, this.#deps.clock.nowMs() - at.getTime()) / 1000 : 0)
    for (const name of classes) {
      const queue = backlog.waiting.find(({ route }) => classOf(route) === name)
      gauges.waiting.set({ class: name, when: 'due' }, queue?.due ?? 0)
      gauges.waiting.set({ class: name, when: 'later' }, queue?.later ?? 0)
    }
    gauges.onWire.set(backlog.onWire)
    gauges.oldestWaiting.set(age(backlog.oldestAcceptedAt))
    gauges.spooled.set(backlog.spooled)
    gauges.oldestSpooled.set(age(backlog.oldestReceivedAt))
    gauges.webhookCalls.set(backlog.webhookCalls)
    gauges.oldestWebhookCall.set(age(backlog.oldestWebhookCallAt))
    gauges.unfolded.set(backlog.unfolded)
    gauges.oldestUnindexed.set(age(backlog.oldestUnindexedAt))
  }
}

function registerHealth(health: DatabaseHealth): Registry {
  const register = new Registry()
  const gauges = upkeepGaugesIn(register)
  const { tables, ids, fullestSequence, slots, archiver, transactions } = health
  gauges.deadRows.set(Math.max(0, ...tables.map(({ deadRows, threshold }) => deadRows - threshold)))
  for (const { kind, age, maxAge } of ids) gauges.idAge.set({ kind }, age / maxAge)
  gauges.sequence.set(fullestSequence?.used ?? 0)
  gauges.heldWal.set(Math.max(0, ...slots.map(({ heldBytes }) => heldBytes)))
  gauges.archiveFails.set(archiver.isFailing ? 1 : 0)
  for (const kind of ['reading', 'writing', 'prepared'] as const)
    gauges.transaction.set({ kind }, transactions.find((one) => one.kind === kind)?.seconds ?? 0)
  return register
}

/** Joins the metrics of processes. Each series gets the label `worker`. */
function byWorker(collected: readonly WorkerMetrics[]): Registry {
  const joined = new Map<string, WorkerMetric>()
  for (const { worker, metrics } of collected)
    for (const metric of metrics) {
      const labelled = metric.values.map((one) => ({ ...one, labels: { worker, ...one.labels } }))
      const known = joined.get(metric.name)
      if (known) known.values.push(...labelled)
      else joined.set(metric.name, { ...metric, values: labelled })
    }
  const merged = new Registry()
  // A registry only reads the name of a metric, and calls `get`.
  for (const metric of joined.values())
    merged.registerMetric({ name: metric.name, get: async () => metric } as unknown as Metric)
  return merged
}

function poolGaugeIn(register: Registry): Gauge<'state'> {
  return new Gauge({
    name: 'posthorn_database_pool_connections',
    help: 'Database connections of this program, and queries waiting for one.',
    labelNames: ['state'],
    registers: [register],
  })
}

const gaugeMaker =
  (register: Registry) =>
  <Label extends string = never>(name: string, help: string, labelNames: Label[] = []) =>
    new Gauge({ name: `posthorn_${name}`, help, labelNames, registers: [register] })

function upkeepGaugesIn(register: Registry) {
  const gauge = gaugeMaker(register)
  return {
    deadRows: gauge(
      'database_dead_rows_above_threshold',
      'Dead rows of the table that exceeds the threshold of its autovacuum by most; 0 if none does.',
    ),
    idAge: gauge(
      'database_id_age_ratio',
      'Age of the oldest transaction and multixact ids, divided by the age at which autovacuum freezes rows.',
      [...(['kind'] as const)],
    ),
    sequence: gauge('database_sequence_used_ratio', 'Used part of the range of the fullest sequence.'),
    heldWal: gauge('database_wal_held_bytes', 'WAL that the replication slot furthest back keeps.'),
    archiveFails: gauge('database_archive_fails', '1 if the last WAL file could not be archived, else 0.'),
    transaction: gauge(
      'database_oldest_transaction_seconds',
      'Age of the oldest open transaction that this role may see; 0 if there is none.',
      [...(['kind'] as const)],
    ),
  }
}

function gaugesIn(register: Registry) {
  const gauge = gaugeMaker(register)
  return {
    waiting: gauge('queue_recipients', 'Waiting recipients by class of destination, due now or later.', [
      ...(['class', 'when'] as const),
    ]),
    onWire: gauge('queue_on_wire', 'Recipients with a delivery attempt in progress.'),
    oldestWaiting: gauge('queue_oldest_seconds', 'Age of the oldest waiting send; 0 if none is waiting.'),
    spooled: gauge('spool_mails', 'Received mails not yet filed.'),
    oldestSpooled: gauge('spool_oldest_seconds', 'Age of the oldest mail not yet filed; 0 if there is none.'),
    webhookCalls: gauge('webhook_calls_waiting', 'Webhook calls waiting for their first attempt or a retry.'),
    oldestWebhookCall: gauge(
      'webhook_oldest_seconds',
      'Age of the oldest webhook call before its first attempt.',
    ),
    unfolded: gauge('metric_deltas', 'Metric counts not yet folded into roll-ups.'),
    oldestUnindexed: gauge(
      'search_lag_seconds',
      'Age of the oldest message that may be missing from search.',
    ),
    up: gauge('database_up', '1 if the database answered the last check, else 0.'),
    roundTrip: gauge('database_round_trip_seconds', 'Round trip time of an empty query.'),
    connections: gauge('database_connections', 'Database connections of all programs by state.', [
      ...(['state'] as const),
    ]),
    maxConnections: gauge(
      'database_connections_max',
      'Maximum number of connections of the database server.',
    ),
  }
}
