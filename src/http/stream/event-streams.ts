// The live stream: one loop reads the outbox for all readers that keep up; the others read on from their own places.
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep, setImmediate as yieldTurn } from 'node:timers/promises'
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { OrganizationId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import type { Caller } from '../../flow/caller.ts'
import { type Presenters, writeAnnouncements } from '../../flow/events/write-announcements.ts'
import type { Db } from '../../postgres/db.ts'
import { listLiveKeys } from '../../store/keys.ts'
import { newestPlace, newestRowOf, type OutboxRow, readOutbox, readOutboxOf } from '../../store/outbox.ts'
import {
  comparePlaces,
  type EventPlace,
  EventReader,
  firstNew,
  formatEvent,
  formatEventId,
  parseEventId,
  type WrittenEvent,
} from './event-reader.ts'
import { Recent } from './recent.ts'

export interface EventStreamsOptions {
  db: Db
  clock: Clock
  log: Log
  present: Presenters
}

const lookMs = 200
const keyCheckMs = 1_000
const heartbeatMs = 15_000
const keptMs = 7 * 86_400_000
const rowsAtOnce = 100
/** Bodies that are written together; each may be as long as a message. */
const itemsAtOnce = 6
const rowsBehind = 8
/** Readers that are behind and read on at the same time: more would only wait for the database, before everybody else. */
const behindAtOnce = 4
/** What readers that are behind share. What is deleted may still be told for as long. */
const bodies = {
  maxAgeMs: 1_000,
  maxWeight: 8 << 20,
  weigh: (events: WrittenEvent[]) => events.reduce((sum, { bytes }) => sum + (bytes?.length ?? 0), 0),
}
const looks = {
  maxAgeMs: lookMs,
  maxWeight: 20_000,
  weigh: (rows: OutboxRow[]) => rows.reduce((sum, { items }) => sum + items.length, 0),
}
const maxReaders = 1_000

export class EventStreams {
  readonly #options: EventStreamsOptions
  /** Everybody; of these `#live` are served by the common loop, and `#joining` wait to be. */
  readonly #readers = new Set<EventReader>()
  readonly #live = new Set<EventReader>()
  readonly #joining = new Set<EventReader>()
  readonly #bodies = new Recent<WrittenEvent[]>(bodies)
  readonly #looks = new Recent<OutboxRow[]>(looks)
  #behind = 0
  readonly #behindWaiting: (() => void)[] = []
  #place: EventPlace = { xact: '0', seq: 0, item: -1 }
  #running: Promise<void> | null = null
  #stopping = false
  #checkedMs = 0
  #beatMs = 0

  constructor(options: EventStreamsOptions) {
    this.#options = options
  }

  /** Finds where the stream is to begin. */
  async begin(
    caller: Caller,
    lastEventId: string | undefined,
  ): Promise<{ place: EventPlace; first: Buffer | null }> {
    const { db } = this.#options
    const known = lastEventId === undefined ? null : await this.#findPlace(caller.organizationId, lastEventId)
    if (known) return { place: known, first: null }
    const place = { ...(await newestPlace(db)), item: Number.MAX_SAFE_INTEGER }
    return { place, first: lastEventId === undefined ? null : await this.#reset(caller.organizationId) }
  }

  /** Serves the connection that `open` gives from `place` on, until either side ends it; refuses a reader too many. */
  add(caller: Caller, place: EventPlace, open: () => ServerResponse): void {
    const { organizationId, id: keyId } = caller
    const count = [...this.#readers].filter((reader) => reader.organizationId === organizationId).length
    if (count >= maxReaders)
      throw new ServiceError(
        'limit_reached',
        `The organization has ${count} streams open, which is the limit.`,
      )
    const response = open()
    if (this.#stopping) return void response.end()
    const reader = new EventReader({ organizationId, keyId }, place, response)
    this.#readers.add(reader)
    response.once('close', () => this.#remove(reader))
    void this.#catchUp(reader)
    this.#running ??= this.#run().finally(() => (this.#running = null))
  }

  /** Ends all streams; their readers come back to another node, or to this one once it runs again. */
  async stop(): Promise<void> {
    this.#stopping = true
    for (const reader of this.#readers) reader.end()
    await this.#running
  }

  #remove(reader: EventReader): void {
    for (const readers of [this.#readers, this.#live, this.#joining]) readers.delete(reader)
  }

  /** The place behind the event, where it is the organization's and not older than seven days. */
  async #findPlace(organizationId: OrganizationId, lastEventId: string): Promise<EventPlace | null> {
    const parsed = parseEventId(lastEventId)
    if (!parsed) return null
    const { db, clock } = this.#options
    const [row] = await readOutboxOf(db, organizationId, parsed.place, 1)
    const isKnown =
      row && comparePlaces(row, parsed.place) === 0 && row.items[parsed.place.item]?.id === parsed.id
    return isKnown && clock.nowMs() - row.createdAt.getTime() <= keptMs ? parsed.place : null
  }

  /** Says that something may have been missed; it can be resumed from, so that it is said once. */
  async #reset(organizationId: OrganizationId): Promise<Buffer> {
    const { db, clock } = this.#options
    const row = await newestRowOf(db, organizationId)
    const item = row ? row.items.length - 1 : 0
    const id = row ? formatEventId(row.items[item]!.id, { ...row, item }) : null
    const event = { type: 'stream.reset', timestamp: clock.now().toISOString(), data: {} }
    return formatEvent(event.type, id, JSON.stringify(event))
  }

  async #run(): Promise<void> {
    for (let failures = 0; this.#readers.size > 0 && !this.#stopping; ) {
      try {
        await this.#endRevoked()
        this.#beat()
        const isMore = await this.#pass()
        failures = 0
        if (!isMore) await sleep(lookMs)
      } catch (error) {
        this.#options.log.warn({ err: error, failures: ++failures }, 'the live stream waits for the database')
        await sleep(1_000)
      }
    }
  }

  /** Reads on once and serves everybody who keeps up; true when there may be more at once. */
  async #pass(): Promise<boolean> {
    const { db } = this.#options
    if (this.#live.size === 0) this.#place = { ...(await newestPlace(db)), item: -1 }
    const fresh = new Recent<OutboxRow[]>({ ...looks, maxAgeMs: Number.POSITIVE_INFINITY })
    for (const reader of this.#joining) await this.#admit(reader, fresh)
    const organizations = [...new Set([...this.#live].map(({ organizationId }) => organizationId))]
    if (organizations.length === 0) return false
    const { rows, place, isMore } = await readOutbox(db, organizations, this.#place, rowsAtOnce)
    for (const row of rows) await this.#serve(row)
    this.#place = { ...place, item: -1 }
    return isMore
  }

  /** While the common loop stands still, a reader that reads up to now, by a `fresh` look, has missed nothing. */
  async #admit(reader: EventReader, fresh: Recent<OutboxRow[]>): Promise<void> {
    this.#joining.delete(reader)
    const isThere = await this.#advance(reader, fresh).catch(() => null)
    if (!this.#readers.has(reader)) return
    if (isThere) this.#live.add(reader)
    else void this.#catchUp(reader)
  }

  async #serve(row: OutboxRow): Promise<void> {
    const readers = () =>
      [...this.#live].filter((reader) => reader.organizationId === row.organizationId && !reader.isBlocked)
    for await (const event of this.#write(row, 0)) {
      const behind = readers().filter(({ place }) => firstNew(place, row) <= event.place.item)
      for (const reader of behind) {
        reader.take(event)
        if (reader.isBlocked) this.#fallBehind(reader)
      }
      if (readers().length === 0) return
    }
  }

  #fallBehind(reader: EventReader): void {
    this.#live.delete(reader)
    void this.#catchUp(reader)
  }

  /** Lets a reader read on from its own place, at its own pace, until it may join the common loop. */
  async #catchUp(reader: EventReader): Promise<void> {
    while (this.#readers.has(reader) && reader.isOpen) {
      try {
        await reader.unblocked()
        if (await this.#inTurn(() => this.#advance(reader, this.#looks)))
          return void this.#joining.add(reader)
      } catch (error) {
        this.#options.log.debug({ err: error }, 'a reader of the live stream waits for the database')
        await sleep(1_000)
      }
    }
  }

  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    while (this.#behind >= behindAtOnce)
      await new Promise<void>((resolve) => this.#behindWaiting.push(resolve))
    this.#behind++
    try {
      return await work()
    } finally {
      this.#behind--
      this.#behindWaiting.shift()?.()
    }
  }

  /** Gives a reader its next events, as far as it takes them at once; true when the look shows no more. */
  async #advance(reader: EventReader, shared: Recent<OutboxRow[]>): Promise<boolean> {
    const { organizationId, place } = reader
    const look = () => readOutboxOf(this.#options.db, organizationId, place, rowsBehind)
    const rows = await shared.get(`${organizationId} ${place.xact}-${place.seq}`, look)
    for (const row of rows) {
      for await (const event of this.#write(row, firstNew(reader.place, row))) {
        if (reader.isBlocked || !reader.isOpen) return false
        reader.take(event)
      }
    }
    return rows.length < rowsBehind && !reader.isBlocked
  }

  /** The row's events from the item `from` on, some at a time. */
  async *#write(row: OutboxRow, from: number): AsyncGenerator<WrittenEvent> {
    for (let begin = from - (from % itemsAtOnce); begin < row.items.length; begin += itemsAtOnce) {
      const key = `${row.xact}-${row.seq}-${begin}`
      const events = await this.#bodies.get(key, () => this.#compose(row, begin))
      // Connections carry off what they have before they are given more.
      await yieldTurn()
      yield* events.slice(Math.max(0, from - begin))
    }
  }

  async #compose(row: OutboxRow, begin: number): Promise<WrittenEvent[]> {
    const items = row.items.slice(begin, begin + itemsAtOnce)
    const announced = items.map((item) => ({
      item,
      organizationId: row.organizationId,
      announcedAt: row.createdAt,
    }))
    const written = await writeAnnouncements(this.#options, announced)
    return written.map((json, index) => {
      const { id, type } = items[index]!
      const place = { xact: row.xact, seq: row.seq, item: begin + index }
      return { place, bytes: json === null ? null : formatEvent(type, formatEventId(id, place), json) }
    })
  }

  /** A revoked or expired key, or an organization that is not active any more, ends its streams. */
  async #endRevoked(): Promise<void> {
    const nowMs = performance.now()
    if (nowMs - this.#checkedMs < keyCheckMs) return
    this.#checkedMs = nowMs
    const { db, clock } = this.#options
    const live = new Set(
      await listLiveKeys(db, [...new Set([...this.#readers].map(({ keyId }) => keyId))], clock.now()),
    )
    for (const reader of this.#readers) if (!live.has(reader.keyId)) reader.end()
  }

  /** A comment now and then keeps proxies from closing the connection. */
  #beat(): void {
    const nowMs = performance.now()
    if (nowMs - this.#beatMs < heartbeatMs) return
    this.#beatMs = nowMs
    for (const reader of this.#readers) {
      if (reader.isBlocked) continue
      reader.write(heartbeat)
      if (reader.isBlocked && this.#live.has(reader)) this.#fallBehind(reader)
    }
  }
}

const heartbeat = Buffer.from(':\n\n')
