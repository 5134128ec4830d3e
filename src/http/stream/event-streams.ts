// The live stream: every reader reads on from its own cursor, and readers with the same cursor share one read.
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep, setImmediate as yieldLoop } from 'node:timers/promises'
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { FairLimit } from '../../base/fair-limit.ts'
import type { OrganizationId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { OutageLog } from '../../base/outage-log.ts'
import { divided } from '../../base/share.ts'
import { rest, type Signal, unwokenPollMs } from '../../base/signal.ts'
import type { Caller } from '../../flow/caller.ts'
import { type Presenters, writeAnnouncements } from '../../flow/events/write-announcements.ts'
import { idleMs } from '../../flow/people/sessions.ts'
import { type Db, isLost } from '../../postgres/db.ts'
import { listLiveKeys } from '../../store/accounts/keys.ts'
import {
  type EventCursor,
  findOrganizationsAfter,
  newestCursor,
  newestEventOf,
  type OutboxCursor,
  readEventsOf,
} from '../../store/events/outbox.ts'
import { listLiveSessions } from '../../store/people/sessions.ts'
import { EventReader, formatEvent, formatEventId, parseEventId, type WrittenEvent } from './event-reader.ts'

export interface EventStreamsOptions {
  db: Db
  clock: Clock
  log: Log
  /** The processes that divide an organization's streams. */
  workers?: number
  present: Presenters
  /** Woken when an event may have been announced. */
  announced: Signal
}

const rowsPolled = 1_000
/** The shortest time between two polls. Events gather meanwhile. */
const pollGapMs = 50
/** How soon to poll again for rows that cannot be read before a running transaction ends. */
const unsettledPollMs = 200
const keyCheckMs = 1_000
const heartbeatMs = 15_000
const keptMs = 7 * 86_400_000
/** Events that are read and written together. Each may be as long as a message. */
const eventsAtOnce = 8
/** Concurrent reads. More would only queue at the database and delay all other work. */
const readsAtOnce = 4
const maxShared = 64
const maxReaders = 1_000

export class EventStreams {
  readonly #options: EventStreamsOptions
  readonly #outage: OutageLog
  readonly #readers = new Set<EventReader>()
  /** Reads since the last poll, by organization and cursor. */
  readonly #shared = new Map<string, Promise<WrittenEvent[]>>()
  readonly #reads = new FairLimit(readsAtOnce)
  /** Readers have been woken for all rows up to this cursor. Null: not yet for any row. */
  #polled: OutboxCursor | null = null
  #running: Promise<void> | null = null
  readonly #stop = new AbortController()
  #checkedMs = 0
  #beatMs = 0

  constructor(options: EventStreamsOptions) {
    this.#options = options
    this.#outage = new OutageLog({ log: options.log, work: 'live streams' })
  }

  /** Finds the cursor at which the stream begins. */
  async begin(
    caller: Caller,
    lastEventId: string | undefined,
  ): Promise<{ cursor: EventCursor; first: Buffer | null }> {
    const { db } = this.#options
    const known =
      lastEventId === undefined ? null : await this.#findCursor(caller.organizationId, lastEventId)
    if (known) return { cursor: known, first: null }
    const cursor = { ...(await newestCursor(db)), item: Number.MAX_SAFE_INTEGER }
    return { cursor, first: lastEventId === undefined ? null : await this.#reset(caller.organizationId) }
  }

  /** Streams from `cursor` on to the connection from `open`, until either side ends it. Refuses a reader over the limit. */
  add(caller: Caller, cursor: EventCursor, open: () => ServerResponse): void {
    const { organizationId } = caller
    const count = [...this.#readers].filter((reader) => reader.organizationId === organizationId).length
    if (count >= divided(maxReaders, this.#options.workers ?? 1))
      throw new ServiceError(
        'limit_reached',
        `The organization already has ${count} open streams, which is the limit. Close one first.`,
      )
    const response = open()
    // If the client left while its cursor was looked up, `close` has already been emitted and will not come again.
    if (this.#stop.signal.aborted || response.destroyed) return void response.end()
    const reader = new EventReader(caller, cursor, response)
    this.#readers.add(reader)
    response.once('close', () => this.#readers.delete(reader))
    void this.#serve(reader)
    this.#running ??= this.#run().finally(() => (this.#running = null))
  }

  /** Ends all streams. Their readers reconnect to another node, or to this node once it runs again. */
  async stop(): Promise<void> {
    this.#stop.abort()
    for (const reader of this.#readers) reader.end()
    await this.#running
  }

  /** Returns the event's cursor if the event belongs to the organization and is not older than seven days. */
  async #findCursor(organizationId: OrganizationId, lastEventId: string): Promise<EventCursor | null> {
    const parsed = parseEventId(lastEventId)
    if (!parsed) return null
    const { db, clock } = this.#options
    const before = { ...parsed.cursor, item: parsed.cursor.item - 1 }
    const [event] = await readEventsOf(db.read(organizationId), organizationId, before, 1)
    const isKnown = event && formatEventId(event.item.id, event.cursor) === lastEventId
    return isKnown && clock.nowMs() - event.announcedAt.getTime() <= keptMs ? parsed.cursor : null
  }

  /** Returns the event that reports a possible gap. Readers can resume from it, so that it is sent once. */
  async #reset(organizationId: OrganizationId): Promise<Buffer> {
    const { db, clock } = this.#options
    const newest = await newestEventOf(db.read(organizationId), organizationId)
    const id = newest && formatEventId(newest.item.id, newest.cursor)
    const event = { type: 'stream.reset', timestamp: clock.now().toISOString(), data: {} }
    return formatEvent(event.type, id, JSON.stringify(event))
  }

  async #run(): Promise<void> {
    this.#polled = null
    const { signal: stop } = this.#stop
    while (this.#readers.size > 0 && !stop.aborted) {
      try {
        await this.#endRevoked()
        this.#beat()
        const nextPollMs = await this.#poll()
        this.#outage.succeed()
        await rest(pollGapMs, stop)
        if (nextPollMs > 0) await this.#options.announced.wait(nextPollMs, stop)
      } catch (error) {
        if (isLost(error)) this.#outage.fail(error)
        else this.#options.log.warn({ err: error }, 'live stream failed to read events; retrying')
        await rest(1_000, stop)
      }
    }
  }

  /** Wakes the readers whose organizations have new rows. Returns how long the next poll may wait for a wake-up. */
  async #poll(): Promise<number> {
    const { db } = this.#options
    const found = this.#polled && (await findOrganizationsAfter(db, this.#polled, rowsPolled))
    this.#polled = found?.last ?? (await newestCursor(db))
    this.#shared.clear()
    for (const reader of this.#readers)
      if (!found || found.organizationIds.has(reader.organizationId)) reader.wake()
    if (!found?.isMore) return unwokenPollMs
    return found.organizationIds.size > 0 ? 0 : unsettledPollMs
  }

  async #serve(reader: EventReader): Promise<void> {
    while (await reader.isReady()) {
      try {
        const events = await this.#readOn(reader)
        if (!reader.take(events) || events.length === eventsAtOnce) reader.wake()
        // Lets connections send their bytes before they get more.
        await yieldLoop()
      } catch (error) {
        this.#options.log.debug({ err: error }, 'live stream reader could not read events; retrying')
        await sleep(1_000)
        reader.wake()
      }
    }
  }

  /** Returns the next events after the reader's cursor. */
  async #readOn({ organizationId, cursor }: EventReader): Promise<WrittenEvent[]> {
    const key = [organizationId, ...Object.values(cursor)].join(' ')
    const known = this.#shared.get(key)
    if (known) return await known
    const reading = this.#reads.run(organizationId, () => this.#write(organizationId, cursor))
    if (this.#shared.size >= maxShared) this.#shared.clear()
    this.#shared.set(key, reading)
    // Readers that wait for this read get its fault. Later readers read again.
    reading.catch(() => this.#shared.delete(key))
    return await reading
  }

  async #write(organizationId: OrganizationId, after: EventCursor): Promise<WrittenEvent[]> {
    const db = this.#options.db.read(organizationId)
    const events = await readEventsOf(db, organizationId, after, eventsAtOnce)
    const written = await writeAnnouncements({ ...this.#options, db }, events)
    return written.map((announcement, index) => {
      const { cursor, item } = events[index]!
      const id = formatEventId(item.id, cursor)
      const bytes = announcement && formatEvent(item.type, id, announcement.json)
      return { cursor, type: item.type, inboxId: announcement?.inboxId ?? null, bytes }
    })
  }

  /** Ends the streams of a revoked or expired key, an ended session, or an inactive organization. */
  async #endRevoked(): Promise<void> {
    const nowMs = performance.now()
    if (nowMs - this.#checkedMs < keyCheckMs) return
    this.#checkedMs = nowMs
    const { db, clock } = this.#options
    const readers = [...this.#readers]
    const keyIds = [...new Set(readers.map(({ keyId }) => keyId))]
    const live = new Set<string>(await listLiveKeys(db, keyIds, clock.now()))
    const sessionIds = [...new Set(readers.flatMap(({ sessionId }) => sessionId ?? []))]
    const since = new Date(clock.nowMs() - idleMs)
    if (sessionIds.length > 0) for (const id of await listLiveSessions(db, sessionIds, since)) live.add(id)
    for (const reader of readers)
      if (!live.has(reader.keyId) || (reader.sessionId && !live.has(reader.sessionId))) reader.end()
  }

  #beat(): void {
    const nowMs = performance.now()
    if (nowMs - this.#beatMs < heartbeatMs) return
    this.#beatMs = nowMs
    for (const reader of this.#readers) reader.beat()
  }
}
