// The source addresses of a queue's pool, as operators see them: warm-up, and limits at the providers of the queue.
import type { Queryable } from '../../postgres/db.ts'
import { findGroups, type GroupRow } from '../../store/sending/destination-groups.ts'
import { readRoute } from '../route-policy.ts'
import { type Source, type SourcePool, sourcesOf, warmUpAt } from '../source-pools.ts'
import { blockedReason } from './group-limits.ts'
import { SentCounts } from './sent-counts.ts'
import { sourceGroupName, warmUpGroup } from './shaping-rules.ts'

export interface TracedPool {
  name: string
  /** The groups of its mail servers, without a source. */
  providers: readonly string[]
  sources: TracedSource[]
}

export interface TracedSource {
  address: string
  ehlo: string
  /** The messages sent within 24 hours, and how many the plan allows now. Null: it is not warming up. */
  warmUp: { sent: number; perDay: number } | null
  /** Its limits at each provider that has refused it. */
  limits: Pick<GroupRow, 'name' | 'connections' | 'perMinute' | 'perHour' | 'pausedUntil' | 'reason'>[]
}

export interface TracedQueue {
  key: string
  /** The groups of its mail servers, without a source. */
  providers: readonly string[]
}

/** Null: the queue has no pool. */
export async function tracePool(
  db: Queryable,
  pools: readonly SourcePool[],
  { key, providers }: TracedQueue,
  at: Date,
): Promise<TracedPool | null> {
  const sources = sourcesOf(pools, key)
  const name = readRoute(key).pool
  if (!sources || name === null) return null
  const namesOf = (source: Source) => providers.map((provider) => sourceGroupName(provider, source))
  const warming = sources.flatMap((source) => source.warmUp && warmUpGroup(source, source.warmUp).name)
  const wanted = [...sources.flatMap(namesOf), ...warming.filter((one) => one !== null)]
  const rows = new Map((await findGroups(db, wanted)).map((row) => [row.name, row]))
  const traced = sources.map((source) => ({
    address: source.address,
    ehlo: source.ehlo,
    warmUp: warmUpOf(source, rows, at),
    limits: namesOf(source).flatMap((one) => limitsOf(rows.get(one))),
  }))
  return { name, providers, sources: traced }
}

function warmUpOf(source: Source, rows: ReadonlyMap<string, GroupRow>, at: Date): TracedSource['warmUp'] {
  const day = source.warmUp && warmUpAt(source.warmUp, at.getTime())
  if (!day) return null
  const row = rows.get(warmUpGroup(source, source.warmUp!).name)
  const sent = new SentCounts(day.periodMs, row?.sent[day.periodMs]).count(at.getTime())
  return { sent, perDay: day.count }
}

function limitsOf(row: GroupRow | undefined): TracedSource['limits'] {
  if (!row?.reason) return []
  const { name, connections, perMinute, perHour, pausedUntil, reason } = row
  return [{ name, connections, perMinute, perHour, pausedUntil, reason }]
}

/** Why no mail leaves from the source to these providers now. Null: it may. */
export function stopOf(
  { address, warmUp, limits }: TracedSource,
  providers: readonly string[],
  at: Date,
): string | null {
  const paused = limits.filter(({ pausedUntil }) => pausedUntil !== null && pausedUntil > at)
  // A source that rests at one provider may send to the domain's servers at another one.
  const isEverywhere = paused.length === providers.length
  const stop = paused.find(({ reason }) => isEverywhere || !reason!.startsWith(blockedReason))
  if (stop) return `${stop.name} waits until ${stop.pausedUntil!.toISOString()}: ${stop.reason}`
  if (!warmUp || warmUp.sent < warmUp.perDay) return null
  return `${address} has sent the ${warmUp.perDay} messages that its warm-up allows in 24 hours`
}
