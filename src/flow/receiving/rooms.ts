// Decides at RCPT if a mailbox has room for a mail. Uses the announced size, or the size of the sender's last refused mail.
import { BoundedMap } from '../../base/bounded-map.ts'
import type { OrganizationId } from '../../base/ids.ts'
import { type Reply, reply } from '../../smtp/reply.ts'
import type { Envelope } from '../../smtp/server/backend.ts'
import type { KeptRow, ReceivedMail } from '../../store/mailbox/spool.ts'
import { type KeptRooms, maxKeptBytes, type Room } from './kept-rooms.ts'
import type { LocalMailbox, Mailboxes } from './mailboxes.ts'

// RFC 3463 3.3: X.2.2, mailbox full.
export const full = reply(452, '4.2.2', 'Mailbox full or over its daily receiving limit, try again later')
export const tooLarge = reply(552, '5.3.4', 'Message exceeds the 1 MiB limit of this address')

/** How many sizes of refused mails are remembered, by sender and holder. */
const maxTooLarge = 10_000

/** The holder of a mail: an organization, or a purpose of the service. */
type Holder = OrganizationId | KeptRow['purpose']

interface RoomsDeps {
  mailboxes: Mailboxes
  keptRooms: KeptRooms
  /** The network whose share of the service's own mail the envelope uses. Null: a trusted peer. */
  networkOf(envelope: Envelope): string | null
}

export class Rooms {
  readonly #deps: RoomsDeps
  /** The size of the last mail refused as too large after DATA, by `tooLargeKey`. */
  readonly #tooLarge = new BoundedMap<string, number>(maxTooLarge)

  constructor(deps: RoomsDeps) {
    this.#deps = deps
  }

  /**
   * Returns null if there is room for one more copy in addition to the copies for earlier recipients. The commit checks
   * again.
   */
  async refusalOf(envelope: Envelope, mailbox: LocalMailbox): Promise<Reply | null> {
    const key = tooLargeKey(envelope, holderOf(mailbox))
    const sizeBytes = envelope.from.sizeBytes ?? this.#tooLarge.get(key) ?? 1
    if ('kept' in mailbox && sizeBytes > maxKeptBytes[mailbox.kept]) return tooLarge
    const { messages, bytes } = await this.#roomOf(envelope, mailbox)
    const fits = (copies: number) => copies <= messages && copies * sizeBytes <= bytes
    const hasRoom = fits(envelope.to.length + 1) || fits(await this.#countCopies(envelope, mailbox))
    return hasRoom ? null : full
  }

  async #roomOf(envelope: Envelope, mailbox: LocalMailbox): Promise<Room> {
    if ('kept' in mailbox)
      return await this.#deps.keptRooms.find(mailbox.kept, this.#deps.networkOf(envelope))
    const { roomMessages: messages, roomBytes: bytes } = mailbox.inbox
    return { messages, bytes }
  }

  /** The number of copies for the mailbox's holder, including one for this recipient. */
  async #countCopies({ to: earlier }: Envelope, mailbox: LocalMailbox): Promise<number> {
    const copies = new Set([copyOf(mailbox)])
    for (const path of earlier) {
      const target = await this.#deps.mailboxes.resolve(path)
      if (!('refusal' in target) && holderOf(target) === holderOf(mailbox)) copies.add(copyOf(target))
    }
    return copies.size
  }

  /**
   * Remembers the size of a refused mail that was for several holders. The size of a mail for one holder is not remembered:
   * it would refuse a smaller mail of the same sender at RCPT.
   */
  noteTooLarge(envelope: Envelope, { raw, inboxes, kept }: ReceivedMail): void {
    const holders = new Set<Holder>([
      ...inboxes.map(({ organizationId }) => organizationId),
      ...kept.map(({ purpose }) => purpose),
    ])
    if (holders.size === 1) return
    for (const holder of holders) this.#tooLarge.set(tooLargeKey(envelope, holder), raw.sizeBytes)
  }
}

/**
 * Identifies the copy. An inbox, or a purpose of the service, gets one copy of a mail, however many of its addresses and
 * tags are named.
 */
export function copyOf(mailbox: LocalMailbox): string {
  return 'inbox' in mailbox ? mailbox.inbox.id : `${mailbox.kept} ${mailbox.submissionId}`
}

function holderOf(mailbox: LocalMailbox): Holder {
  return 'inbox' in mailbox ? mailbox.inbox.organizationId : mailbox.kept
}

function tooLargeKey({ from }: Envelope, holder: Holder): string {
  return `${holder} ${from.address}`
}
