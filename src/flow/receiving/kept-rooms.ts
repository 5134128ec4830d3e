// Computes how much more mail the service's own addresses accept. Anybody may write to them, so each sending network has a
// share.
import type { Clock } from '../../base/clock.ts'
import { KnownFor } from '../../base/known-for.ts'
import type { Db } from '../../postgres/db.ts'
import { countWaitingKept, type KeptAmount } from '../../store/mailbox/kept-mail.ts'
import type { KeptBounds, KeptRow } from '../../store/mailbox/spool.ts'

/** How much more mail a holder may receive. A holder is an organization, or a purpose of the service's own mail. */
export interface Room {
  messages: number
  bytes: number
}

const keptBytes = 256 << 20
/**
 * Reports are read within seconds, but operators read their mail when they have time. So one network's share of operators'
 * mail is smaller.
 */
export const keptBounds: KeptBounds = {
  operator: { mails: 10_000, bytes: keptBytes, share: 0.1 },
  feedback: { mails: 10_000, bytes: keptBytes, share: 0.5 },
  return_path: { mails: 10_000, bytes: keptBytes, share: 0.5 },
}
/** A report may contain a complete returned mail. */
export const maxKeptBytes: Record<KeptRow['purpose'], number> = {
  operator: 1 << 20,
  feedback: Number.POSITIVE_INFINITY,
  return_path: Number.POSITIVE_INFINITY,
}

/** How long a count of kept mail is cached. The commit counts again. */
const knownMs = 1_000
const maxKnown = 10_000

type Key = `${KeptRow['purpose']} ${string}`

export class KeptRooms {
  readonly #amounts: KnownFor<Key, KeptAmount>

  constructor({ db, clock }: { db: Db; clock: Clock }) {
    this.#amounts = new KnownFor({
      name: 'count kept mail',
      clock,
      ms: knownMs,
      max: maxKnown,
      load: async (keys) =>
        new Map(await Promise.all(keys.map(async (key) => [key, await countOf(db, key)] as const))),
    })
  }

  /** How much more mail of the purpose a network may send. `network` null: a trusted peer, which has no share. */
  async find(purpose: KeptRow['purpose'], network: string | null): Promise<Room> {
    const { mails, bytes, share } = keptBounds[purpose]
    const held = await this.#find(`${purpose} `)
    const free = { messages: mails - held.mails, bytes: bytes - held.bytes }
    if (network === null) return free
    const own = await this.#find(`${purpose} ${network}`)
    const messages = roomOfShare(share, own.mails, free.messages)
    if (own.mails === 0) return { ...free, messages: Math.min(free.messages, Math.max(messages, 1)) }
    return { messages, bytes: roomOfShare(share, own.bytes, free.bytes) }
  }

  async #find(key: Key): Promise<KeptAmount> {
    return (await this.#amounts.find(key))!
  }
}

/**
 * Returns how much more a network that holds `own` may send. It then holds up to `share` times the amount that stays free.
 */
function roomOfShare(share: number, own: number, free: number): number {
  return Math.floor((share * free - own) / (1 + share))
}

async function countOf(db: Db, key: Key): Promise<KeptAmount> {
  const [purpose, network] = key.split(' ') as [KeptRow['purpose'], string]
  return await countWaitingKept(db, purpose, network === '' ? null : network, keptBounds[purpose].mails)
}
