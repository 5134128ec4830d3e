// The destination groups that this node sends to: their limits, kept in the database and shared with other nodes.
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { meters } from '../../base/meters.ts'
import type { Db } from '../../postgres/db.ts'
import {
  findGroups,
  type GroupRow,
  joinGroups,
  leaveGroups,
  noteGroupsOfRoutes,
  saveGroups,
} from '../../store/sending/destination-groups.ts'
import { readRoute } from '../route-policy.ts'
import { isOfFamily, type Source, type SourcePool, sourcesOf, warmUpAt } from '../source-pools.ts'
import { enterOne } from './enter-one.ts'
import type { GroupState } from './group-limits.ts'
import { type Held, ShapedGroup, Slot } from './group-slots.ts'
import { type DestinationGroup, groupOf, type ShapingRules, warmUpGroup } from './shaping-rules.ts'

export interface ShaperDeps {
  db: Db
  clock: Clock
  log: Log
  rules: ShapingRules
  /** The pools with the sources of this machine. If absent, there are none. */
  pools?: readonly SourcePool[]
  /** This node's number, and whether other nodes live. */
  node: { readonly nodeId: number | null; readonly hasOthers: boolean }
}

/** A group in memory. */
interface Known {
  group: ShapedGroup
  /** When its stored state was last written or adopted. */
  knownAtMs: number
  usedAtMs: number
  /** Whether this node is noted among those that send to it. */
  isJoined: boolean
  /** The queues that send to it, until the database has their group. */
  routes: Set<string>
}

/** A group that is not used is forgotten after this time. A stored one is read again when it is needed. */
const forgetMs = 600_000

/**
 * A node that does not use a group for this long leaves it, so that its part of the limits is free for the others. It
 * forgets the group, because from then on it does not know what the others send.
 */
const leaveMs = 60_000

/** Queues of a group that has no row yet, remembered in case that it gets one. */
const maxUnnoted = 100

/**
 * Several nodes share a group's limits. Each notes the groups that it sends to, and gets an equal part of their limits. It
 * adopts what the others have stored at each `synchronize`. A node that is alone notes and reads nothing.
 */
export class Shaper {
  readonly #deps: ShaperDeps
  readonly #known = new Map<string, Known>()
  readonly #loading = new Map<string, Promise<Known>>()

  constructor(deps: ShaperDeps) {
    this.#deps = deps
  }

  /**
   * Takes a connection to the host for a job of `wanted` messages of the queue, from a source of its pool. Otherwise says
   * until when the queue must wait.
   */
  async enter(
    route: string,
    { host, address }: { host: string; address: string },
    wanted: number,
    signal: AbortSignal,
  ): Promise<Slot | Held> {
    const pool = sourcesOf(this.#deps.pools ?? [], route)
    const sources = pool ? pool.filter((source) => isOfFamily(source, address)) : [null]
    const found = await Promise.all(sources.map((source) => this.#use(route, host, source)))
    // An operator may have ended a pause since the last `synchronize`.
    await this.#adopt(found.filter(({ group }) => group.isPaused))
    const groups = found.map(({ group }) => group)
    const entered = await enterOne(groups, wanted, signal)
    if (entered instanceof Slot) entered.domain = readRoute(route).hop
    return entered
  }

  async #use(route: string, host: string, source: Source | null): Promise<Known> {
    const { rules, clock } = this.#deps
    const plan = source?.warmUp && warmUpAt(source.warmUp, clock.nowMs()) ? source.warmUp : null
    const whole = source && plan ? await this.#find(warmUpGroup(source, plan), null) : null
    // At once: while the other group is loaded, `synchronize` must not forget this one.
    if (whole) whole.usedAtMs = clock.monotonicMs()
    const known = await this.#find(groupOf(rules, route, host, source), whole?.group ?? null)
    known.usedAtMs = clock.monotonicMs()
    if (known.routes.size < maxUnnoted) known.routes.add(route)
    return known
  }

  /** Stores the groups that have changed, and adopts what other nodes and operators have changed. */
  async synchronize(): Promise<void> {
    const { clock } = this.#deps
    const all = [...this.#known.values()]
    await this.#save(all.filter(({ group }) => group.limits.isChanged && group.limits.mustBeStored))
    await this.#noteRoutes(all.filter(({ group, routes }) => routes.size > 0 && group.limits.mustBeStored))
    const used = all.filter(({ group, isJoined }) => group.isInUse || isJoined)
    if (this.#deps.node.hasOthers) await this.#join(used)
    else for (const { group } of all) group.limits.setShare({ nodes: 1, rank: 0 })
    const isPaused = ({ group }: Known) => group.limits.pauseMs(clock.nowMs()) > 0
    await this.#adopt(this.#deps.node.hasOthers ? used : all.filter(isPaused))
    const idleMs = ({ group, usedAtMs }: Known) => (group.isInUse ? 0 : clock.monotonicMs() - usedAtMs)
    await this.#leave(all.filter((known) => known.isJoined && idleMs(known) > leaveMs))
    for (const { group } of used) group.grant()
    measureLimits(all, clock.nowMs())
    for (const known of all) if (idleMs(known) > forgetMs) this.#known.delete(known.group.name)
  }

  /** Stores the last changes, and leaves every group. */
  async stop(): Promise<void> {
    const all = [...this.#known.values()]
    await this.#save(all.filter(({ group }) => group.limits.isChanged && group.limits.mustBeStored))
    await this.#leave(all.filter(({ isJoined }) => isJoined))
  }

  /** `whole`: the group of all messages of its source, while that is warming up. */
  async #find(destination: DestinationGroup, whole: ShapedGroup | null): Promise<Known> {
    const { name } = destination
    const known = this.#known.get(name)
    if (known && (known.isJoined || !this.#deps.node.hasOthers)) return known
    const loading = this.#loading.get(name) ?? this.#load(destination, known, whole)
    this.#loading.set(name, loading)
    return await loading.finally(() => this.#loading.delete(name))
  }

  async #load(
    destination: DestinationGroup,
    before: Known | undefined,
    whole: ShapedGroup | null,
  ): Promise<Known> {
    const { db, clock, node } = this.#deps
    const [row] = before ? [] : await findGroups(db.writer, [destination.name])
    const known = before ?? {
      group: new ShapedGroup(this.#deps, destination, row ? stateOf(row) : null, whole),
      knownAtMs: row?.changedAt.getTime() ?? 0,
      usedAtMs: clock.monotonicMs(),
      isJoined: false,
      routes: new Set<string>(),
    }
    if (node.hasOthers) await this.#join([known])
    if (before && node.hasOthers) await this.#adopt([known])
    this.#known.set(destination.name, known)
    return known
  }

  async #save(changed: Known[]): Promise<void> {
    if (changed.length === 0) return
    const at = this.#deps.clock.now()
    const rows = changed.map(({ group }) => rowOf(group, at))
    for (const { group } of changed) group.limits.isChanged = false
    try {
      await saveGroups(this.#deps.db.writer, rows)
    } catch (error) {
      for (const { group } of changed) group.limits.isChanged = true
      throw error
    }
    for (const known of changed) known.knownAtMs = at.getTime()
  }

  async #noteRoutes(unnoted: Known[]): Promise<void> {
    const pairs = unnoted.flatMap(({ group, routes }) =>
      [...routes].map((route) => ({ route, name: group.provider })),
    )
    if (pairs.length === 0) return
    await noteGroupsOfRoutes(this.#deps.db.writer, pairs)
    for (const { routes } of unnoted) routes.clear()
  }

  async #join(joining: Known[]): Promise<void> {
    const { nodeId } = this.#deps.node
    if (nodeId === null || joining.length === 0) return
    const names = joining.map(({ group }) => group.name)
    const shares = new Map(
      (await joinGroups(this.#deps.db.writer, nodeId, names)).map(({ name, nodes }) => [name, nodes]),
    )
    for (const known of joining) {
      const nodes = shares.get(known.group.name) ?? [nodeId]
      known.isJoined = true
      known.group.limits.setShare({ nodes: nodes.length, rank: nodes.indexOf(nodeId) })
    }
  }

  async #adopt(adopting: Known[]): Promise<void> {
    if (adopting.length === 0) return
    const rows = await findGroups(
      this.#deps.db.writer,
      adopting.map(({ group }) => group.name),
    )
    const byName = new Map(rows.map((row) => [row.name, row]))
    for (const known of adopting) {
      const row = byName.get(known.group.name)
      if (!row || row.changedAt.getTime() === known.knownAtMs || known.group.limits.isChanged) continue
      known.knownAtMs = row.changedAt.getTime()
      known.group.limits.adopt(stateOf(row))
    }
  }

  async #leave(leaving: Known[]): Promise<void> {
    const { nodeId } = this.#deps.node
    if (nodeId === null || leaving.length === 0) return
    for (const { group } of leaving) this.#known.delete(group.name)
    await leaveGroups(
      this.#deps.db.writer,
      nodeId,
      leaving.map(({ group }) => group.name),
    )
  }
}

function measureLimits(all: readonly Known[], nowMs: number): void {
  meters.shapingPaused.reset()
  meters.shapingConnections.reset()
  for (const { group } of all) {
    if (group.isPaused) meters.shapingPaused.inc({ group: group.label })
    if (group.isNamed) meters.shapingConnections.set({ group: group.name }, group.limits.connections(nowMs))
  }
}

function rowOf({ name, limits }: ShapedGroup, changedAt: Date): GroupRow {
  const { pausedUntilMs, refusedFirstMs, refusedAtMs, ...rest } = limits.state
  const dateOf = (ms: number) => (ms === 0 ? null : new Date(ms))
  const pausedUntil = dateOf(pausedUntilMs)
  return {
    name,
    changedAt,
    pausedUntil,
    refusedFirst: dateOf(refusedFirstMs),
    refusedAt: dateOf(refusedAtMs),
    ...rest,
  }
}

function stateOf({ connections, perMinute, perHour, refusals, reason, sent, ...row }: GroupRow): GroupState {
  return {
    connections,
    perMinute,
    perHour,
    refusals,
    reason,
    sent,
    pausedUntilMs: row.pausedUntil?.getTime() ?? 0,
    refusedFirstMs: row.refusedFirst?.getTime() ?? 0,
    refusedAtMs: row.refusedAt?.getTime() ?? 0,
  }
}
