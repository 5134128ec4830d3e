// One reader of the live stream: its place, and its connection, which takes no more than it can carry off.
import type { ServerResponse } from 'node:http'
import type { KeyId, OrganizationId } from '../../base/ids.ts'
import type { OutboxPlace, OutboxRow } from '../../store/outbox.ts'

/** A row of the outbox and one of its items; -1: before the first. */
export interface EventPlace extends OutboxPlace {
  item: number
}

/** An event as it goes over the wire; null where what it told of has been deleted. */
export interface WrittenEvent {
  place: EventPlace
  bytes: Buffer | null
}

/** Server-sent events: a name, an id to resume from, and one line of JSON. */
export function formatEvent(type: string, id: string | null, json: string): Buffer {
  return Buffer.from(`${id === null ? '' : `id: ${id}\n`}event: ${type}\ndata: ${json}\n\n`)
}

// PostgreSQL would read the number of a transaction with a zero in front as octal, and refuse one past 64 bits.
const tokenPattern = /^([0-9a-f-]{36})\.(0|[1-9]\d{0,18})-(\d{1,15})-(\d{1,5})$/

/** What `last-event-id` says: the event's own id, and where it stands. */
export function formatEventId(id: string, { xact, seq, item }: EventPlace): string {
  return `${id}.${xact}-${seq}-${item}`
}

export function parseEventId(text: string): { id: string; place: EventPlace } | null {
  const [, id, xact, seq, item] = tokenPattern.exec(text) ?? []
  return id ? { id, place: { xact: xact!, seq: Number(seq), item: Number(item) } } : null
}

export function comparePlaces(a: OutboxPlace, b: OutboxPlace): number {
  if (a.xact !== b.xact) return BigInt(a.xact) < BigInt(b.xact) ? -1 : 1
  return a.seq - b.seq
}

/** The first item of the row that somebody at `place` has not had. */
export function firstNew(place: EventPlace, row: OutboxRow): number {
  const order = comparePlaces(row, place)
  if (order < 0) return row.items.length
  return order === 0 ? place.item + 1 : 0
}

export class EventReader {
  readonly organizationId: OrganizationId
  readonly keyId: KeyId
  /** What has been given to the connection last. */
  place: EventPlace
  readonly #response: ServerResponse
  #isBlocked = false

  constructor(
    { organizationId, keyId }: { organizationId: OrganizationId; keyId: KeyId },
    place: EventPlace,
    response: ServerResponse,
  ) {
    this.organizationId = organizationId
    this.keyId = keyId
    this.place = place
    this.#response = response.on('drain', () => (this.#isBlocked = false))
  }

  get isBlocked(): boolean {
    return this.#isBlocked
  }

  get isOpen(): boolean {
    return !this.#response.writableEnded && !this.#response.destroyed
  }

  /** Gives the connection one event; once it is blocked nothing more may be given until it is not. */
  take({ place, bytes }: WrittenEvent): void {
    if (bytes) this.write(bytes)
    this.place = place
  }

  write(bytes: Buffer): void {
    if (this.isOpen && !this.#response.write(bytes)) this.#isBlocked = true
  }

  /** Resolves when the connection can carry more, or has ended. */
  async unblocked(): Promise<void> {
    if (!this.#isBlocked || !this.isOpen) return
    await new Promise<void>((resolve) => {
      const done = () => {
        this.#response.off('drain', done).off('close', done)
        resolve()
      }
      this.#response.on('drain', done).on('close', done)
    })
  }

  /** Ends the stream; a reader that does not take the end is cut off. */
  end(): void {
    if (this.#isBlocked || !this.isOpen) this.#response.destroy()
    else this.#response.end()
  }
}
