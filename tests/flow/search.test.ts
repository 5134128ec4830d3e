// The word index: filled from the outbox later, complete after any fault, and bounded in its reads. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../src/base/log.ts'
import { makeSearchable } from '../../src/flow/searching/make-searchable.ts'
import { NoWords, ParsePool } from '../../src/mail/parse-pool.ts'
import { type SearchedMail, writeVector } from '../../src/mail/read/words.ts'
import { mendOutbox, purgeOutbox } from '../../src/store/events/webhook-deliveries.ts'
import { purgeMessages } from '../../src/store/mailbox/removal.ts'
import type { Message } from '../support/api.ts'
import { untilLocked } from '../support/lock-waits.ts'
import { makePlace, send, startNode } from '../support/node.ts'
import { turnAutovacuumOff } from '../support/postgres.ts'
import { idOf, range, setStage } from '../support/search-stage.ts'
import { until } from '../support/until.ts'

test('search: sent and received mail is found soon after, through the running service', async (t) => {
  const node = await startNode(await makePlace(t), { env: { POSTHORN_DELIVERY: 'capture' } })
  const { api } = await node.createCaller()
  const [inbox, other] = [await api.createInbox(), await api.createInbox()]
  const { message } = await send(api, inbox, [other.address], { text: 'Ein Wort über Blumenkohl.' })
  const path = (id: string) => `/v1/inboxes/${id}/messages?q=blumenkohl+uber`
  const search = async (id: string) => (await api.want<{ messages: Message[] }>(path(id))).messages
  const [outbound] = await until('the sent one to be found', async () => {
    const found = await search(inbox.id)
    return found.length > 0 ? found : null
  })
  assert.equal(outbound!.id, message.id)
  const [inbound] = await until('the received one to be found', async () => {
    const found = await search(other.id)
    return found.length > 0 ? found : null
  })
  assert.equal(inbound!.direction, 'inbound')
  await until('the index to have caught up', async () => {
    const { host, port } = node.app.listening.operator
    const text = await (await fetch(`http://${host}:${port}/metrics`)).text()
    return /^posthorn_search_lag_seconds 0$/m.test(text)
  })
})

test('search: nodes that index at the same time miss nothing and store each message once', async (t) => {
  const { file, index, find, rows } = await setStage(t)
  for (const n of range(0, 10)) await file(range(n * 20, n * 20 + 20).map((n) => ({ n, text: `word w${n}` })))
  await Promise.all([index(), index(), index()])
  await index()
  assert.deepEqual(await find('word', { limit: 500 }), range(0, 200).reverse())
  assert.equal(await rows('message_search'), 200)
})

test('search: a failure during indexing loses no message', async (t) => {
  const { db, file, index, find } = await setStage(t)
  await file(range(0, 300).map((n) => ({ n, text: `word w${n}` })))
  let turn = 0
  const breaking = async (mails: SearchedMail[]) => {
    // The connections break in the middle of the second batch, as after a kill of PostgreSQL.
    if (++turn === 20)
      await db.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
      )
    return mails.map(writeVector)
  }
  await assert.rejects(index(breaking))
  const some = await find('word', { limit: 500 })
  assert.ok(some.length > 0 && some.length < 300, `${some.length} of them`)
  await index()
  assert.deepEqual(await find('word', { limit: 500 }), range(0, 300).reverse())
})

test('check 97: a message that cannot be indexed is skipped, and the others are not', async (t) => {
  const { file, index, find, rows } = await setStage(t)
  await file(range(0, 40).map((n) => ({ n, text: n === 17 ? 'poison word' : 'word' })))
  await index(async (mails) => {
    if (mails.some(({ fields }) => fields.at(-1)!.includes('poison'))) throw new NoWords()
    return mails.map(writeVector)
  })
  await file([{ n: 40, text: 'word' }])
  await index()
  assert.deepEqual(
    await find('word'),
    range(0, 41)
      .filter((n) => n !== 17)
      .reverse(),
  )
  assert.equal(await rows('message_search'), 41)
})

test('check 77: a message deleted before, during or after indexing leaves nothing in the index', async (t) => {
  const { db, file, index, find, rows } = await setStage(t)
  await file(range(0, 10).map((n) => ({ n, text: 'word' })))
  await file(range(10, 20).map((n) => ({ n, text: 'word', inbox: 'inb_b' })))
  await db.query('delete from message where id = $1', [idOf(0)])
  let isFirst = true
  await index(async (mails) => {
    if (isFirst) await db.query('delete from message where id = $1', [idOf(1)])
    isFirst = false
    return mails.map(writeVector)
  })
  await db.query('delete from message where id = $1', [idOf(2)])
  assert.deepEqual(await find('word'), range(3, 10).reverse())
  assert.equal(await rows('message_search'), 17)
  await file([{ n: 20, text: 'word', inbox: 'inb_b' }])
  await db.query(`update inbox set status = 'deleted' where id = 'inb_b'`)
  assert.deepEqual(await find('word', { inbox: 'inb_b' }), [])
  await index()
  while (await db.transaction((tx) => purgeMessages(tx, 4)));
  assert.deepEqual([await rows('message_search'), await rows('search_part')], [7, 1])
  assert.equal(await rows('search_waiting'), 0)
})

test('search: indexing waits for a message’s deletion, and indexes the message if it stays', async (t) => {
  const { db, file, index, find } = await setStage(t)
  await file([{ n: 1, text: 'word' }])
  const indexing = db
    .transaction(async (tx) => {
      await tx.query('delete from message where id = $1', [idOf(1)])
      const running = index()
      await untilLocked(db)
      throw Object.assign(new Error('refused'), { running })
    })
    .catch((error) => error.running)
  await indexing
  assert.deepEqual(await find('word'), [1])
})

test('check 76: pages of a search keep the list’s order over many parts, with late and deleted mail', async (t) => {
  const { db, file, index, find } = await setStage(t)
  // Every hundredth was received early and is filed last, like mail on which the parser failed.
  const late = (n: number) => n % 100 === 50
  const all = range(1, 8_700)
  const filed = [...all.filter((n) => !late(n)), ...all.filter(late)]
  for (let at = 0; at < filed.length; at += 256)
    await file(
      filed.slice(at, at + 256).map((n) => ({ n, text: n % 1_000 === 7 ? 'common rare' : 'common' })),
    )
  await index()
  const parts = await db.query(`select from search_part where inbox_id = 'inb_a'`)
  assert.equal(parts.length, 3)
  await db.query(`delete from message where id = $1`, [idOf(8_000)])
  const wanted = all.filter((n) => n !== 8_000).reverse()
  assert.deepEqual(await find('common', { limit: 10_000 }), wanted)
  const paged: number[] = []
  for (let page: number[] = []; ; ) {
    page = await find('common', { before: page.at(-1) ?? null, limit: 700 })
    if (page.length === 0) break
    paged.push(...page)
  }
  assert.deepEqual(paged, wanted)
  assert.deepEqual(await find('rare'), all.filter((n) => n % 1_000 === 7).reverse())
})

test('search: many parts are searched together, in order', async (t) => {
  const { db, organizationId, file, index, find } = await setStage(t)
  const all = range(1, 1_001)
  // The parts of an inbox of 400,000 messages.
  await db.query(
    `insert into search_part (organization_id, inbox_id, after_id, from_seq)
    select $1, 'inb_a', after, 1000000 from unnest($2::text[]) after`,
    [organizationId, ['', ...all.filter((n) => n % 10 === 0).map(idOf)]],
  )
  for (let at = 0; at < all.length; at += 200)
    await file(all.slice(at, at + 200).map((n) => ({ n, text: `common a${n % 9} b${n % 111} 東京${n}` })))
  await index()
  const cases: [q: string, holds: (n: number) => boolean][] = [
    ['common', () => true],
    ['a4 b7', (n) => n % 9 === 4 && n % 111 === 7],
    ['"a4 b7"', (n) => n % 9 === 4 && n % 111 === 7],
    ['b11*', (n) => n % 111 === 11 || n % 111 === 110],
    ['京77', (n) => n === 77],
    ['b7 '.repeat(60), (n) => n % 111 === 7],
    ['none', () => false],
  ]
  for (const [q, holds] of cases)
    for (const [before, limit] of [
      [1_001, 2_000],
      [700, 3],
      [12, 50],
    ] as const)
      assert.deepEqual(
        await find(q, { before, limit }),
        all
          .filter((n) => holds(n) && n < before)
          .reverse()
          .slice(0, limit),
        `${q} before ${before}`,
      )
})

test('search: reads grow neither with other mail, nor with the inbox for common words', async (t) => {
  // One connection, so that the plans made over empty tables are the plans that run.
  const { db, file, take, indexSome, index, find } = await setStage(t, 1)
  await turnAutovacuumOff(db)
  /** Counts the index entries that the work has read. */
  const entriesRead = async (work: () => Promise<unknown>) => {
    const count = async () => {
      await db.query('select pg_stat_force_next_flush()')
      const [row] = await db.query<{ count: number }>(
        `select sum(idx_tup_read)::bigint as count from pg_stat_user_indexes
        where relname in ('message', 'message_search', 'search_part', 'search_waiting')`,
      )
      return row!.count
    }
    const before = await count()
    await work()
    return (await count()) - before
  }
  const read = async (q: string) => {
    let found = 0
    const rows = await entriesRead(async () => (found = (await find(q, { limit: 51 })).length))
    return { found, rows }
  }
  await file(range(0, 20).map((n) => ({ n, text: n === 3 ? 'common rare' : 'common' })))
  await index()
  await read('rare')
  await db.query(
    `insert into search_part (organization_id, inbox_id, after_id, from_seq) select gen_random_uuid(), 'inb_b', '', 0`,
  )
  await db.query(
    `with m as (
      insert into message (id, organization_id, inbox_id, thread_id, seq, direction, internet_message_id, reference_ids,
        sender, recipients, subject, text, metadata, purpose, attachments, created_at, updated_at)
      select 'msg_f' || lpad(n::text, 23, '0'), gen_random_uuid(), case when n % 2 = 0 then 'inb_a' else 'inb_b' end, 't',
        1000 + n, 'inbound', '', '{}', '{}', '{"to": []}', '', '', '{}', '', '[]', now(), now()
      from generate_series(1, 20000) n returning id, organization_id, inbox_id, seq
    ), p as (
      insert into search_part (organization_id, inbox_id, after_id, from_seq)
      select gen_random_uuid(), 'inb_a', 'msg_f' || lpad((k * 4096)::text, 23, '0'), k * 4096 from generate_series(0, 4) k
      returning number, inbox_id, after_id
    )
    select count(*) from m`,
  )
  await db.query(
    `insert into message_search select m.id, m.organization_id, m.inbox_id, ('''' || to_hex((
      select p.number from search_part p where p.inbox_id = m.inbox_id and p.after_id < m.id
      order by p.after_id desc, p.number desc limit 1)) || '_common''')::tsvector
    from message m where m.id like 'msg_f%' on conflict do nothing`,
  )
  for (const [n, state] of ['planned over small tables', 'analyzed'].entries()) {
    const rare = await read('rare')
    assert.equal(rare.found, 1)
    assert.ok(rare.rows < 50, `${state}: ${rare.rows} entries for a rare word`)
    const common = await read('common')
    assert.equal(common.found, 51)
    assert.ok(common.rows < 4_096 + 500, `${state}: ${common.rows} entries for a common word`)
    await file([{ n: 100 + n, text: 'new' }])
    await take()
    const indexing = await entriesRead(async () => {
      while (await indexSome());
    })
    assert.ok(indexing < 100, `${state}: ${indexing} entries to index one message`)
    assert.deepEqual(await find('new', { limit: 1 }), [100 + n])
    await db.query('analyze')
  }
})

test('search: the outbox keeps unindexed messages, and both survive a restore into another cluster', async (t) => {
  const { db, file, index, find, rows } = await setStage(t)
  await db.query(`update outbox_cursor set xact = '9223372036854775807' where name = 'webhooks'`)
  await file([{ n: 1, text: 'word' }])
  await index()
  await file([{ n: 2, text: 'word' }])
  const later = new Date(Date.now() + 1e12)
  await db.transaction((tx) => purgeOutbox(tx, later, later, 100))
  assert.equal(await rows('outbox'), 1)
  await file([{ n: 3, text: 'word' }])
  for (const table of ['outbox', 'outbox_cursor'])
    await db.query(`update ${table} set xact = (xact::text::bigint % 1000000000000 + 1000000000)::text::xid8`)
  await file([{ n: 4, text: 'word' }])
  // The rows of the other cluster have transaction numbers ahead of this one's.
  const words = async (mails: SearchedMail[]) => mails.map(writeVector)
  const [cursor, olderCursor] = [{ last: null }, { last: null }]
  while (await makeSearchable({ db, log: silentLog, parsePool: { words }, cursor, olderCursor }));
  assert.deepEqual(await find('word'), [1])
  assert.equal(await db.transaction(mendOutbox), true)
  await index()
  assert.deepEqual(await find('word'), [4, 3, 2, 1])
  await db.transaction((tx) => purgeOutbox(tx, later, later, 100))
  assert.equal(await rows('outbox'), 0)
})

test('check 60: the longest and strangest texts fit the index, and their beginning is found', async (t) => {
  const { file, index, find } = await setStage(t)
  const pool = new ParsePool({ threads: 1, timeoutMs: 10_000 })
  t.after(() => pool.close())
  const some = (length: number, make: (n: number) => string) =>
    Array.from({ length }, (_, n) => make(n)).join('')
  const texts = [
    some(300_000, (n) => `${n.toString(36)} `),
    some(600_000, (n) => String.fromCodePoint(0x20000 + ((n * 7_919) % 40_000))),
    some(600_000, (n) => String.fromCodePoint(0xac00 + ((n * 7_919) % 11_000))),
    some(9_000, (n) => `${'𝒳'.repeat(70)}${n.toString(36)} `),
    '\ufdfa'.repeat(600_000),
    `a${'\u0323\u0301'.repeat(300_000)}`,
    'word '.repeat(200_000),
    'x'.repeat(600_000),
    `${' '.repeat(600_000)}word`,
  ]
  await file(texts.map((text, n) => ({ n, text: `begin ${text}` })))
  await index((mails) => pool.words(mails))
  // A page of size one holds the only match.
  for (const n of texts.keys()) assert.deepEqual(await find('begin', { before: n + 1, limit: 1 }), [n])
  assert.deepEqual(await find('"word word"', { limit: 1 }), [6])
})
