// A database with organizations and inboxes, filed mail, and the word index as a test runs it.
import type { TestContext } from 'node:test'
import { type InboxId, newUuid, type OrganizationId } from '../../src/base/ids.ts'
import { silentLog } from '../../src/base/log.ts'
import { makeSearchable } from '../../src/flow/searching/make-searchable.ts'
import { readQuery, type SearchedMail, writeVector } from '../../src/mail/read/words.ts'
import { Db } from '../../src/postgres/db.ts'
import { listMessages } from '../../src/store/mailbox/message-pages.ts'
import { takeNewMessages, writeTsquery } from '../../src/store/mailbox/search.ts'
import { beginSearch } from '../../src/store/mailbox/searched-inboxes.ts'
import { indexAll, unread } from './indexed.ts'
import { testDatabase } from './postgres.ts'
import { until } from './until.ts'

interface Mail {
  /** Becomes the last digits of its id. */
  n: number
  text: string
  inbox?: string
}

export const idOf = (n: number) => `msg_${n.toString(16).padStart(24, '0')}`

export async function setStage(t: TestContext, maxConnections = 16) {
  const db = new Db({ connection: await testDatabase({ after: (end) => t.after(end) }), maxConnections })
  t.after(() => db.close())
  /** Searches these inboxes for the first time. */
  const activate = async (inboxes: string[], at = new Date()) => {
    for (const id of inboxes) await db.transaction((tx) => beginSearch(tx, id as InboxId, 2_000, at))
  }
  /** Its inboxes are searched from the beginning. */
  const addOrganization = async (inboxes: string[]) => {
    const id = await addUnsearched(inboxes)
    await activate(inboxes)
    return id
  }
  /** Its inboxes have never been searched. */
  const addUnsearched = async (inboxes: string[]) => {
    const id = newUuid<OrganizationId>()
    await db.query(
      `insert into organization (id, name, status, limits, created_at, updated_at)
      values ($1, 'Test', 'active', '{}', now(), now())`,
      [id],
    )
    await db.query(
      `insert into inbox (id, organization_id, local_part, domain, display_name, status, created_at, updated_at)
      select id, $1, id, 'inbox.test', '', 'active', now(), now() from unnest($2::text[]) id`,
      [id, inboxes],
    )
    return id
  }
  const organizationId = await addOrganization(['inb_a', 'inb_b'])
  /** Files mails of one organization in one commit. */
  const file = async (mails: Mail[], organization = organizationId, beforeCommit = async () => {}) => {
    const rows = mails.map(({ n, text, inbox = 'inb_a' }) => ({ id: idOf(n), inbox, text }))
    const items = rows.map(({ id }) => ({ id: newUuid(), type: 'message.received', message: id }))
    await db.transaction(async (tx) => {
      await tx.query(
        `with numbered as (
          update inbox b set message_seq = b.message_seq + n.count
          from (select x->>'inbox' as id, count(*) from jsonb_array_elements($1) x group by 1) n where n.id = b.id
          returning b.id, b.message_seq - n.count as base
        )
        insert into message (id, organization_id, inbox_id, thread_id, seq, direction, internet_message_id, reference_ids,
          sender, recipients, subject, text, metadata, purpose, attachments, created_at, updated_at)
        select x.id, $2, x.inbox, 't', b.base + row_number() over (partition by x.inbox order by x.place), 'inbound', '',
          '{}', '{"email": "a@far.test"}', '{"to": []}', '', x.text, '{}', '', '[]', now(), now()
        from rows from (jsonb_to_recordset($1) as (id text, inbox text, text text)) with ordinality x(id, inbox, text, place)
        join numbered b on b.id = x.inbox`,
        [JSON.stringify(rows), organization],
      )
      await tx.query('insert into outbox (organization_id, items, created_at) values ($1, $2, now())', [
        organization,
        JSON.stringify(items),
      ])
      await beforeCommit()
    })
  }
  const [cursor, olderCursor] = [{ last: null }, { last: null }]
  const make = async (mails: SearchedMail[]) => mails.map(writeVector)
  /** Indexes one batch, or begins new parts. */
  const indexSome = (words = make) =>
    makeSearchable({ db, log: silentLog, parsePool: { words }, cursor, olderCursor })
  /** Queues all new mail once no transaction of another test delays it. Indexes nothing. */
  const take = async () => {
    const most = { rows: 256, items: 2_000 }
    await until('all that is new to wait', async () => {
      while ((await db.transaction((tx) => takeNewMessages(tx, most))) > 0);
      return (await db.query(`${unread} limit 1`)).length === 0
    })
  }
  const index = async (words = make) => {
    await indexAll(db, () => indexSome(words))
  }
  const find = async (q: string, { inbox = 'inb_a', before = null as number | null, limit = 100 } = {}) => {
    const filter = { inboxId: inbox as never, direction: null, from: null, sinceId: null, untilId: null }
    const words = writeTsquery(readQuery(q))
    const numbers: number[] = []
    let last = before === null ? null : idOf(before)
    do {
      const found = await listMessages(db, { ...filter, words }, last, limit - numbers.length)
      numbers.push(...found.page.map(({ id }) => Number.parseInt(id.slice(4), 16)))
      last = found.last?.id ?? null
    } while (last !== null && numbers.length < limit)
    return numbers
  }
  const rows = async (table: string) => {
    const [row] = await db.query<{ count: number }>(`select count(*) as count from ${table}`)
    return row!.count
  }
  return {
    db,
    organizationId,
    addOrganization,
    addUnsearched,
    activate,
    file,
    take,
    indexSome,
    index,
    find,
    rows,
  }
}

export const range = (from: number, until: number) => Array.from({ length: until - from }, (_, i) => from + i)
