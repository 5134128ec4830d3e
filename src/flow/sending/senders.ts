// Finds the inboxes that send, by id and by address, and keeps them for a second. The commit checks that they still exist.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { KnownFor } from '../../base/known-for.ts'
import type { Db } from '../../postgres/db.ts'
import {
  type AddressedInbox,
  findInboxes,
  findInboxesByAddress,
  type InboxRow,
} from '../../store/mailbox/inboxes.ts'
import type { SendingCaller } from '../caller.ts'
import { knownForMs } from '../known-everywhere.ts'
import type { Sender } from './send-draft.ts'

const maxKnown = 50_000

export class Senders {
  readonly #inboxes: KnownFor<string, InboxRow>
  readonly #addressed: KnownFor<string, AddressedInbox>

  constructor({ db, clock }: { db: Db; clock: Clock }) {
    const kept = { clock, ms: knownForMs, missingMs: 0, max: maxKnown }
    this.#inboxes = new KnownFor({
      ...kept,
      name: 'senders',
      load: async (ids) => new Map((await findInboxes(db, ids)).map((row) => [row.id, row])),
    })
    this.#addressed = new KnownFor({
      ...kept,
      name: 'sender addresses',
      load: async (addresses) => {
        const found = await findInboxesByAddress(db, addresses, clock.now())
        return new Map(found.map((inbox) => [inbox.address, inbox]))
      },
    })
  }

  /** Returns the inbox as the sender, from a look-up no older than `sinceMs`. Throws `not_found` if the caller has none. */
  async find(caller: SendingCaller, inboxId: string, sinceMs?: number): Promise<Sender> {
    const inbox = await this.#inboxes.find(inboxId, sinceMs)
    if (inbox?.organizationId !== caller.organizationId || inbox.status !== 'active')
      throw new ServiceError('not_found', 'There is no such inbox.')
    const { id, localPart, domain, domainId, displayName } = inbox
    return { id, mailbox: { email: `${localPart}@${domain}`, name: displayName }, domain, domainId }
  }

  /** Returns the id of the caller's inbox with this address key, or null. */
  async findId({ organizationId }: SendingCaller, address: string): Promise<string | null> {
    const inbox = await this.#addressed.find(address)
    // Security: nobody may learn whether another organization has an inbox with this address.
    return inbox?.organizationId === organizationId ? inbox.id : null
  }
}
