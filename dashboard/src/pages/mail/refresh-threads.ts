// Keeps a long list of threads current without refetching it.
import type { QueryClient } from '@tanstack/react-query'
import { type MailRow, readThreads, type ThreadList, type Threads, threadsKey } from './mail-queries.ts'
import { allInboxes } from './place.ts'

/** Refreshes the lists that have the inbox's threads: its own, and the list of all inboxes. */
export async function refreshThreads(queries: QueryClient, inboxId: string): Promise<void> {
  await Promise.all([...new Set([inboxId, allInboxes])].map((id) => refreshList(queries, id)))
}

/** Reads the newest threads and merges them into the top of the list. */
async function refreshList(queries: QueryClient, inboxId: string): Promise<void> {
  if (!queries.getQueryData(threadsKey(inboxId))) return
  const newest = await readThreads(inboxId)
  const known = queries.getQueryData<Threads>(threadsKey(inboxId))
  if (!known) return
  const merged = putAbove(newest, known)
  if (merged) queries.setQueryData(threadsKey(inboxId), merged)
  else await queries.resetQueries({ queryKey: threadsKey(inboxId) })
}

/** Returns null if threads between the newest and the known ones may be missing. */
export function putAbove(newest: ThreadList, known: Threads): Threads | null {
  const [first, ...later] = known.pages
  const oldest = newest.rows.at(-1)
  if (!first || !oldest || newest.nextCursor === null) return { pages: [newest], pageParams: [undefined] }
  const isKnown = new Set(first.rows.map(keyOf))
  if (first.rows.length > 0 && !newest.rows.some((row) => isKnown.has(keyOf(row)))) return null
  const ids = new Set(newest.rows.map(({ threadId }) => threadId))
  // A known thread that should be among the newest but is not was deleted.
  const isBelow = (row: MailRow) => !ids.has(row.threadId) && compare(row, oldest) > 0
  const without = (page: ThreadList) =>
    page.rows.every(isBelow) ? page : { ...page, rows: page.rows.filter(isBelow) }
  const top = { rows: [...newest.rows, ...first.rows.filter(isBelow)], nextCursor: first.nextCursor }
  return { pages: [top, ...later.map(without)], pageParams: known.pageParams }
}

function keyOf({ threadId, at }: MailRow): string {
  return `${at} ${threadId}`
}

/** Sorts by time, newest first. Threads of the same time are sorted by id, greatest first. */
function compare(one: MailRow, other: MailRow): number {
  const [left, right] = [keyOf(one), keyOf(other)]
  return left === right ? 0 : left < right ? 1 : -1
}
