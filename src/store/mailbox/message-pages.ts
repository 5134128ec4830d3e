// Pages of messages: weighed before they are read, and read a stretch at a time where they are heavy.
import { ServiceError } from '../../base/errors.ts'
import type { InboxId, MessageId, ThreadId } from '../../base/ids.ts'
import type { Queryable } from '../../postgres/db.ts'
import {
  jsonTextBytes,
  maxAnswerBytes,
  maxGrowth,
  maxReadBytes,
  restBytes,
  textBytes,
} from './message-weight.ts'
import { columnsWith, findMessages, itsInbox, type MessageRow } from './messages.ts'
import { stretchOf } from './stretch.ts'

/** What a page may weigh that is read at once, with the statement that weighs it. */
const maxLightBytes = 1 << 20

/** How many a page holds; `orFewer`: or as many of them as an answer can hold. */
export interface PageSize {
  limit: number
  orFewer: boolean
}

export interface MessagePage {
  /** Those of a heavy page are still to be read; what is gone by then is left out. */
  page: MessageRow[] | AsyncIterable<MessageRow>
  /** The last of them, where there is more behind it. */
  last: Pick<MessageRow, 'id' | 'seq'> | null
}

/** Selects rows of `message m` in an order, at most as many as `max` says. */
interface Picked {
  rows(max: string): string
  order: string
}

/** A message of a page, its other columns null where the page is heavy. */
interface WeighedRow extends MessageRow<string> {
  weight: number
  /** How many were found, one more than the limit at most. */
  count: number
  isLight: boolean
}

/**
 * Reads a page of the rows that `picked` selects. It is weighed before it is read: texts that are too much for one
 * answer would take the memory of everybody. A page then ends before them, or, where that is not asked for, is refused. What
 * texts weigh as JSON is measured only where it could be too much.
 */
async function readPage(
  db: Queryable,
  { rows, order }: Picked,
  values: unknown[],
  { limit, orFewer }: PageSize,
): Promise<MessagePage> {
  const max = `$${values.length + 1}::integer`
  const found = await db.query<WeighedRow>(
    `select ${pageColumns}, m.weight, m.count, m.is_light as "isLight" from (
      select m.*, sum(m.json_weight) over (order by m.ordinal) as json_to
      from (
        select m.*, m.page_weight <= ${maxLightBytes} as is_light,
          case when m.page_weight * ${maxGrowth} > ${maxAnswerBytes} and m.weight_to <= ${maxAnswerBytes}
            then ${jsonTextBytes} + ${restBytes} else m.weight end as json_weight
        from (
          select m.*, count(*) over () as count, sum(m.weight) over (order by m.ordinal) as weight_to,
            sum(m.weight) filter (where m.ordinal <= ${max}) over () as page_weight
          from (
            select m.*, row_number() over (order by ${order}) as ordinal, ${textBytes} + ${restBytes} as weight
            from (${rows(`${max} + 1`)}) m order by ${order} limit ${max} + 1
          ) m
        ) m
      ) m
    ) m ${itsInbox}
    where m.ordinal = 1 or (m.ordinal <= ${max} and m.json_to <= ${maxAnswerBytes})
    order by m.ordinal`,
    [...values, limit],
  )
  const [first, count] = [found[0], found[0]?.count ?? 0]
  if (!orFewer && found.length < Math.min(limit, count)) throw new ServiceError('page_too_large')
  const last = found.length < count ? (found.at(-1) ?? null) : null
  if (!first || first.isLight) return { page: found.map(withoutWeight), last }
  const stretches = inStretches(found)
  return { page: readStretches(db, stretches), last: last && { id: last.id, seq: last.seq } }
}

const ifLight = (column: string) => `case when m.is_light then ${column} end`
const pageColumns = `${columnsWith(ifLight, ifLight)}, false as "isCut"`

function withoutWeight({ weight, count, isLight, ...row }: WeighedRow): MessageRow {
  return row
}

/** The ids of messages that are read together: more than one only where they are light. */
function inStretches(rows: WeighedRow[]): MessageId[][] {
  const stretches: MessageId[][] = []
  let leftBytes = 0
  for (const { id, weight } of rows) {
    leftBytes -= weight
    if (leftBytes >= 0) stretches.at(-1)!.push(id)
    else {
      stretches.push([id])
      leftBytes = maxReadBytes - weight
    }
  }
  return stretches
}

async function* readStretches(db: Queryable, stretches: MessageId[][]): AsyncGenerator<MessageRow> {
  for (const ids of stretches) yield* await findMessages(db, ids)
}

type Direction = MessageRow['direction']

export interface MessageFilter {
  inboxId: InboxId
  direction: Direction | null
  from: string | null
  /** Bounds of the id: ids begin with their milliseconds. */
  sinceId: string | null
  untilId: string | null
  /** What `writeQuery` made of the words that must occur. */
  words: string | null
}

export interface FoundPage extends Pick<MessagePage, 'page'> {
  /** Where the next page begins: the last message read, or the last hit compared; null at the end. */
  last: Pick<MessageRow, 'id'> | null
  /** Whether the search ended before all hits of its words were compared. */
  isCut: boolean
}

/** The inbox's messages, newest first, after `beforeId`. */
export async function listMessages(
  db: Queryable,
  filter: MessageFilter,
  beforeId: string | null,
  size: PageSize,
): Promise<FoundPage> {
  if (filter.words !== null) return await searchMessages(db, filter, filter.words, beforeId, size)
  const { inboxId, sinceId, untilId, direction, from } = filter
  const rows = (max: string) =>
    directionsOf(direction)
      .map((one) => `(${pickOf(one, from)} limit ${max})`)
      .join(' union all ')
  const values = [inboxId, sinceId, untilId, beforeId, ...(from === null ? [] : [from])]
  return { ...(await readPage(db, { rows, order: 'm.id desc' }, values, size)), isCut: false }
}

function directionsOf(direction: Direction | null): Direction[] {
  return direction === null ? ['inbound', 'outbound'] : [direction]
}

/** Each direction has its own part of an index; and what an inbox sends is from its own address, or from no other. */
function pickOf(direction: string, from: string | null): string {
  if (from === null || direction === 'outbound') {
    const isOwn =
      from === null
        ? ''
        : `$5 = (select lower(b.local_part || '@' || b.domain) from inbox b where b.id = $1) and`
    const stretch = stretchOf(['m.inbox_id', 'm.direction', 'm.id'], ['$1::text', `'${direction}'`], idBounds)
    return `select m.* from message m where ${isOwn} ${stretch}`
  }
  const columns = ['m.inbox_id', `left(lower(m.sender->>'email'), 400)`, 'm.id'] as const
  return `select m.* from message m where m.direction = 'inbound' and ${stretchOf(columns, ['$1::text', '$5'], idBounds)}`
}

const idBounds = [`coalesce($2, 'msg_')`, `least(coalesce($3, 'msg_g'), coalesce($4, 'msg_g'))`] as const

/** Hits of the words that one search compares with a direction or a sender: 5,000 take about 30 ms. */
const maxCompared = 5_000

/** The same by the index of words, which knows only what has been indexed since it was filed. */
async function searchMessages(
  db: Queryable,
  { inboxId, direction, from, sinceId, untilId }: MessageFilter,
  words: string,
  beforeId: string | null,
  size: PageSize,
): Promise<FoundPage> {
  const hits = await db.query<{ id: MessageId; isFound: boolean }>(
    `select message_id as id, is_found as "isFound" from search_messages($1, $2, $3, $4, coalesce($5, 'msg_'),
      least(coalesce($6, 'msg_g'), coalesce($7, 'msg_g')), $8, ${maxCompared})`,
    [inboxId, words, direction, from, sinceId, untilId, beforeId, size.limit + 1],
  )
  const found = hits.filter(({ isFound }) => isFound).map(({ id }) => id)
  const rows = () => 'select m.* from message m where m.id = any($1)'
  const { page, last } = await readPage(db, { rows, order: 'm.id desc' }, [found], size)
  const end = hits.at(-1)
  const isCut = end?.isFound === false
  // One that was deleted since it was found makes the page shorter, and is not the end of the search.
  const isMore = isCut || found.length > size.limit
  return { page, last: last ?? (isMore ? end! : null), isCut }
}

/**
 * The inbox's messages, or those of one direction, oldest first, after the number `afterSeq`: numbers are given under the
 * inbox's lock, in the order of filing.
 */
export async function listFollowing(
  db: Queryable,
  { inboxId, direction }: Pick<MessageFilter, 'inboxId' | 'direction'>,
  afterSeq: number,
  size: PageSize,
): Promise<MessagePage> {
  // Each direction has its own part of the index.
  const pickOne = (one: string, max: string) =>
    `(select m.* from message m where m.inbox_id = $1 and m.direction = '${one}' and m.seq > $2 order by m.seq limit ${max})`
  const rows = (max: string) =>
    directionsOf(direction)
      .map((one) => pickOne(one, max))
      .join(' union all ')
  return await readPage(db, { rows, order: 'm.seq' }, [inboxId, afterSeq], size)
}

/** The thread's messages, oldest first, after the number `afterSeq`. */
export async function listThreadMessages(
  db: Queryable,
  threadId: ThreadId,
  afterSeq: number,
  size: PageSize,
): Promise<MessagePage> {
  const rows = (max: string) =>
    `select m.* from message m where m.thread_id = $1 and m.seq > $2 order by m.seq limit ${max}`
  return await readPage(db, { rows, order: 'm.seq' }, [threadId, afterSeq], size)
}
