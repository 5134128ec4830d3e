// Pages of messages. A page ends before the weights of its messages together exceed `maxReadBytes`.
import type { InboxId, MessageId, ThreadId } from '../../base/ids.ts'
import type { Queryable } from '../../postgres/db.ts'
import { stretchOf } from '../stretch.ts'
import { maxReadBytes } from './message-weight.ts'
import { itsInbox, type MessageRow, messageColumns, readMessages } from './messages.ts'

export interface MessagePage {
  page: MessageRow[]
  /** The last message of the page if more follow, else null. */
  last: Pick<MessageRow, 'id' | 'seq'> | null
}

/** Selects rows of `message m` in an order, up to `max`. */
interface Picked {
  rows(max: string): string
  order: string
}

/**
 * Reads a page of the rows that `picked` selects: up to `limit` of them, with weights of up to `maxReadBytes` together. The
 * first message is always part of the page, whatever its weight.
 */
async function readPage(
  db: Queryable,
  { rows, order }: Picked,
  values: unknown[],
  limit: number,
): Promise<MessagePage> {
  const max = `$${values.length + 1}::integer`
  const page = await readMessages<MessageRow & { isFollowed: boolean }>(
    db,
    `select ${messageColumns}, m.is_followed as "isFollowed" from (
      select m.*, row_number() over pages as ordinal, sum(m.weight_bytes) over pages as weight_to,
        lead(m.id) over pages is not null as is_followed
      from (${rows(`${max} + 1`)}) m window pages as (order by ${order})
    ) m ${itsInbox}
    where m.ordinal = 1 or (m.ordinal <= ${max} and m.weight_to <= ${maxReadBytes})
    order by m.ordinal`,
    [...values, limit],
  )
  const last = page.at(-1)
  return { page, last: last?.isFollowed ? last : null }
}

type Direction = MessageRow['direction']

export interface MessageFilter {
  inboxId: InboxId
  direction: Direction | null
  from: string | null
  /** Bounds of the id: ids begin with their milliseconds. */
  sinceId: string | null
  untilId: string | null
  /** The required words, as `writeQuery` returns them. */
  words: string | null
}

export interface FoundPage extends Pick<MessagePage, 'page'> {
  /** The next page starts after this message: the last of this page, or the last hit compared. Null at the end. */
  last: Pick<MessageRow, 'id'> | null
  /** Whether the search ended before all hits of its words were compared. */
  isCut: boolean
}

/** Lists the inbox's messages, newest first, after `beforeId`. */
export async function listMessages(
  db: Queryable,
  filter: MessageFilter,
  beforeId: string | null,
  limit: number,
): Promise<FoundPage> {
  if (filter.words !== null) return await searchMessages(db, filter, filter.words, beforeId, limit)
  const { rows, values } = filteredRows(filter, beforeId)
  return { ...(await readPage(db, { rows, order: 'm.id desc' }, values, limit)), isCut: false }
}

export interface FoundIds {
  ids: MessageId[]
  /** If the search ended before all hits of its words were compared: the last hit compared. */
  cutAt: MessageId | null
}

/** Finds up to `limit` of the inbox's messages, newest first, before `beforeId`. */
export async function findMessageIds(
  db: Queryable,
  filter: MessageFilter,
  beforeId: string | null,
  limit: number,
): Promise<FoundIds> {
  if (filter.words !== null) return await searchIds(db, filter, filter.words, beforeId, limit)
  const { rows, values } = filteredRows(filter, beforeId)
  const max = `$${values.length + 1}::integer`
  const found = await db.query<{ id: MessageId }>(
    `select m.id from (${rows(max)}) m order by m.id desc limit ${max}`,
    [...values, limit],
  )
  return { ids: found.map(({ id }) => id), cutAt: null }
}

/** The rows of a filter without words, before `beforeId`. */
function filteredRows(
  { inboxId, sinceId, untilId, direction, from }: MessageFilter,
  beforeId: string | null,
): Pick<Picked, 'rows'> & { values: unknown[] } {
  const rows = (max: string) => {
    const newest = directionsOf(direction).map((one) => `(${pickOf(one, from)} limit ${max})`)
    return `select m.* from (${newest.join(' union all ')}) m where m.id >= coalesce($2, 'msg_')`
  }
  return { rows, values: [inboxId, sinceId, untilId, beforeId, ...(from === null ? [] : [from])] }
}

function directionsOf(direction: Direction | null): Direction[] {
  return direction === null ? ['inbound', 'outbound'] : [direction]
}

/**
 * Each direction is a range of an index. An inbox sends only from its own address, so other senders match no sent message.
 */
function pickOf(direction: string, from: string | null): string {
  if (from === null || direction === 'outbound') {
    const isOwn =
      from === null
        ? ''
        : `$5 = (select lower(b.local_part || '@' || b.domain) from inbox b where b.id = $1) and`
    const stretch = stretchOf(
      ['m.inbox_id', 'm.direction', 'm.id'],
      ['$1::text', `'${direction}'`],
      beforeBoth,
    )
    return `select m.* from message m where ${isOwn} ${stretch}`
  }
  const columns = ['m.inbox_id', `left(lower(m.sender->>'email'), 400)`, 'm.id'] as const
  return `select m.* from message m where m.direction = 'inbound' and ${stretchOf(columns, ['$1::text', '$5'], beforeBoth)}`
}

const beforeBoth = `least(coalesce($3, 'msg_g'), coalesce($4, 'msg_g'))`

/** One search compares up to this many hits of its words with a direction or a sender; 5,000 take about 30 ms. */
const maxCompared = 5_000

/** Finds up to `limit` messages by the word index, which has only the messages indexed by now. */
async function searchIds(
  db: Queryable,
  { inboxId, direction, from, sinceId, untilId }: MessageFilter,
  words: string,
  beforeId: string | null,
  limit: number,
): Promise<FoundIds> {
  const hits = await db.query<{ id: MessageId; isFound: boolean }>(
    `select message_id as id, is_found as "isFound" from search_messages($1, $2, $3, $4, coalesce($5, 'msg_'),
      least(coalesce($6, 'msg_g'), coalesce($7, 'msg_g')), $8, ${maxCompared})`,
    [inboxId, words, direction, from, sinceId, untilId, beforeId, limit],
  )
  const end = hits.at(-1)
  const ids = hits.filter(({ isFound }) => isFound).map(({ id }) => id)
  return { ids, cutAt: end?.isFound === false ? end.id : null }
}

/** Lists messages by the word index. */
async function searchMessages(
  db: Queryable,
  filter: MessageFilter,
  words: string,
  beforeId: string | null,
  limit: number,
): Promise<FoundPage> {
  const { ids, cutAt } = await searchIds(db, filter, words, beforeId, limit + 1)
  const rows = () => 'select m.* from message m where m.id = any($1)'
  const { page, last } = await readPage(db, { rows, order: 'm.id desc' }, [ids], limit)
  // A hit that was deleted meanwhile makes the page shorter, but does not end the search.
  const end = cutAt ?? (ids.length > limit ? ids.at(-1)! : null)
  return { page, last: last ?? (end === null ? null : { id: end }), isCut: cutAt !== null }
}

/**
 * Lists the inbox's messages, or those of one direction, oldest first, after the number `afterSeq`. Numbers are given
 * under the inbox's lock, in the order of filing.
 */
export async function listFollowing(
  db: Queryable,
  { inboxId, direction }: Pick<MessageFilter, 'inboxId' | 'direction'>,
  afterSeq: number,
  limit: number,
): Promise<MessagePage> {
  // Each direction is a range of the index.
  const pickOne = (one: string, max: string) =>
    `(select m.* from message m where m.inbox_id = $1 and m.direction = '${one}' and m.seq > $2 order by m.seq limit ${max})`
  const rows = (max: string) =>
    directionsOf(direction)
      .map((one) => pickOne(one, max))
      .join(' union all ')
  return await readPage(db, { rows, order: 'm.seq' }, [inboxId, afterSeq], limit)
}

/** Lists the thread's messages, oldest first, after the number `afterSeq`. */
export async function listThreadMessages(
  db: Queryable,
  threadId: ThreadId,
  afterSeq: number,
  limit: number,
): Promise<MessagePage> {
  const rows = (max: string) =>
    `select m.* from message m where m.thread_id = $1 and m.seq > $2 order by m.seq limit ${max}`
  return await readPage(db, { rows, order: 'm.seq' }, [threadId, afterSeq], limit)
}
