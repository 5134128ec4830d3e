// One reader of the live stream: its cursor, and its connection, which gets only as much as it can carry.
import type { ServerResponse } from 'node:http'
import type { InboxId, KeyId, OrganizationId, SessionId } from '../../base/ids.ts'
import { type Caller, hasScope } from '../../flow/caller.ts'
import type { EventCursor, EventType } from '../../store/events/outbox.ts'

/** An event as it is sent; `bytes` is null if its subject has been deleted. */
export interface WrittenEvent {
  cursor: EventCursor
  type: EventType
  /** Null if the event belongs to no inbox. */
  inboxId: InboxId | null
  bytes: Buffer | null
}

/**
 * A key with only `mailbox:read` sees only message and attachment events. A restricted key sees only its inboxes' events.
 */
function maySee(caller: Caller, { type, inboxId }: WrittenEvent): boolean {
  const isOfMailbox = type.startsWith('message.') || type === 'attachment.scanned'
  if (!isOfMailbox && !hasScope(caller, 'webhook:manage')) return false
  return caller.inboxIds === null || (inboxId !== null && caller.inboxIds.includes(inboxId))
}

/** Formats a server-sent event: a name, an id to resume from, and one line of JSON. */
export function formatEvent(type: string, id: string | null, json: string): Buffer {
  return Buffer.from(`${id === null ? '' : `id: ${id}\n`}event: ${type}\ndata: ${json}\n\n`)
}

// PostgreSQL would read a transaction number with a leading zero as octal, and refuse a number over 64 bits.
const tokenPattern = /^([0-9a-f-]{36})\.(0|[1-9]\d{0,18})-(\d{1,15})-(\d{1,5})$/

/** Formats `last-event-id`: the event's own id, and its position. */
export function formatEventId(id: string, { xact, seq, item }: EventCursor): string {
  return `${id}.${xact}-${seq}-${item}`
}

export function parseEventId(text: string): { id: string; cursor: EventCursor } | null {
  const [, id, xact, seq, item] = tokenPattern.exec(text) ?? []
  return id ? { id, cursor: { xact: xact!, seq: Number(seq), item: Number(item) } } : null
}

export class EventReader {
  readonly organizationId: OrganizationId
  readonly keyId: KeyId
  /** Null: the caller is a key with a secret, not a session. */
  readonly sessionId: SessionId | null
  /** The last event that was written to the connection, or skipped because the caller may not see it. */
  cursor: EventCursor
  /** Whether there may be events after the cursor. */
  #isWoken = true
  #isBlocked = false
  readonly #caller: Caller
  readonly #response: ServerResponse
  #resume = () => {}

  constructor(caller: Caller, cursor: EventCursor, response: ServerResponse) {
    this.organizationId = caller.organizationId
    this.keyId = caller.id
    this.sessionId = caller.sessionId ?? null
    this.#caller = caller
    this.cursor = cursor
    this.#response = response
      .on('drain', () => {
        this.#isBlocked = false
        this.#resume()
      })
      .on('close', () => this.#resume())
  }

  get #isOpen(): boolean {
    return !this.#response.writableEnded && !this.#response.destroyed
  }

  wake(): void {
    this.#isWoken = true
    this.#resume()
  }

  /** Resolves to true when there may be events and the connection has room, and to false when the stream has ended. */
  async isReady(): Promise<boolean> {
    while (this.#isOpen && (this.#isBlocked || !this.#isWoken))
      await new Promise<void>((resolve) => (this.#resume = resolve))
    this.#isWoken = false
    return this.#isOpen
  }

  /** Writes events while the connection has room. Returns false if some are left. */
  take(events: readonly WrittenEvent[]): boolean {
    for (const event of events) {
      if (this.#isBlocked || !this.#isOpen) return false
      if (event.bytes && maySee(this.#caller, event)) this.#write(event.bytes)
      this.cursor = event.cursor
    }
    return true
  }

  /** Writes a comment, which keeps proxies from closing the connection. */
  beat(): void {
    if (!this.#isBlocked) this.#write(heartbeat)
  }

  /** Ends the stream. Destroys the connection if the client is not reading. */
  end(): void {
    if (this.#isBlocked || !this.#isOpen) this.#response.destroy()
    else this.#response.end()
  }

  #write(bytes: Buffer): void {
    if (this.#isOpen && !this.#response.write(bytes)) this.#isBlocked = true
  }
}

const heartbeat = Buffer.from(':\n\n')
