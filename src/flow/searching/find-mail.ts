// Searches several inboxes at once, for the dashboard: their messages together, newest first.
import { firstMessageIdAt, type InboxId, type MessageId } from '../../base/ids.ts'
import type { Queryable } from '../../postgres/db.ts'
import { type InboxRow, listInboxesByActivity } from '../../store/mailbox/inboxes.ts'
import { type MailRow, readMailRows } from '../../store/mailbox/mail-rows.ts'
import { type FoundIds, findMessageIds, type MessageFilter } from '../../store/mailbox/message-pages.ts'
import type { Caller } from '../caller.ts'
import type { InboxSearches } from './search-inbox.ts'

interface Deps {
  db: Queryable
  inboxSearches: Pick<InboxSearches, 'prepare' | 'isIndexed' | 'run'>
}

export interface FoundMail {
  rows: MailRow[]
  /** The position of the next page. Null at the end. */
  last: string | null
  /** Whether every message was searched. */
  isComplete: boolean
  /** Whether some messages wait to be indexed, so that a later search may find more. */
  isIndexing: boolean
}

/** One search covers this many inboxes, those with the newest mail. */
const maxInboxes = 200
/** After this time no further inbox begins to be indexed. The next search goes on with it. */
const maxPrepareMs = 2_000

/** An inbox to search, and a bound that is above the ids of all its messages. */
type Target = Pick<InboxRow, 'id' | 'organizationId'> & { newestId: string }

/** Finds messages of the inbox, or of all inboxes of the caller without one. `filterOf` returns the filter for an inbox. */
export async function findMail(
  { db, inboxSearches }: Deps,
  caller: Caller,
  search: {
    inbox: InboxRow | null
    filterOf: (inboxId: InboxId) => MessageFilter
    before: string | null
    limit: number
  },
): Promise<FoundMail> {
  const { filterOf, before, limit } = search
  const { targets, isWhole } = await readTargets(db, caller, search.inbox)
  const untilMs = performance.now() + maxPrepareMs
  let [found, cutAt, isIndexing] = [[] as MessageId[], '', false]
  for (const target of targets) {
    const filter = filterOf(target.id)
    const oldestId = [found[limit] ?? '', cutAt, filter.sinceId ?? ''].sort().at(-1)!
    // The inboxes are sorted by their newest message, so no further one has a message for this page.
    if (target.newestId <= oldestId) break
    if (filter.words !== null) {
      const isIndexed = await inboxSearches[performance.now() < untilMs ? 'prepare' : 'isIndexed'](target)
      isIndexing ||= !isIndexed
    }
    const hits = await inboxSearches.run(caller.organizationId, () =>
      findMessageIds(db, filter, before, limit + 1),
    )
    if (hits.cutAt !== null && hits.cutAt > cutAt) cutAt = hits.cutAt
    found = merge(found, hits, limit + 1)
  }
  // Above the cut nothing is missing. The next page begins there.
  const above = found.filter((id) => id > cutAt)
  const page = above.slice(0, limit)
  const last = above.length > limit ? page.at(-1)! : cutAt || null
  const isComplete = isWhole && !isIndexing && cutAt === ''
  return { rows: await readMailRows(db, page), last, isComplete, isIndexing }
}

function merge(found: readonly MessageId[], { ids }: FoundIds, limit: number): MessageId[] {
  return [...found, ...ids].sort((one, other) => (one < other ? 1 : -1)).slice(0, limit)
}

/** The inboxes to search, those with the newest mail first. */
async function readTargets(
  db: Queryable,
  { organizationId, inboxIds: ids }: Caller,
  inbox: InboxRow | null,
): Promise<{ targets: Target[]; isWhole: boolean }> {
  if (inbox) return { targets: [{ ...inbox, newestId: 'msg_g' }], isWhole: true }
  const inboxes = await listInboxesByActivity(db, { organizationId, ids, text: null }, null, maxInboxes + 1)
  const targets = inboxes
    .slice(0, maxInboxes)
    .flatMap(({ id, lastMessageAt }) =>
      lastMessageAt ? [{ id, organizationId, newestId: firstMessageIdAt(lastMessageAt.getTime() + 1) }] : [],
    )
  return { targets, isWhole: inboxes.length <= maxInboxes }
}
