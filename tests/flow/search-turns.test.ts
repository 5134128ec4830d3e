// Rotation between organizations in the word index: a busy one does not delay another's mail. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OrganizationId } from '../../src/base/ids.ts'
import { silentLog } from '../../src/base/log.ts'
import { makeSearchable } from '../../src/flow/searching/make-searchable.ts'
import { NoWords } from '../../src/mail/parse-pool.ts'
import { type SearchedMail, writeVector } from '../../src/mail/read/words.ts'
import type { Queryable } from '../../src/postgres/db.ts'
import { ownTables, removeOwnRows } from '../../src/store/mailbox/removal.ts'
import { dropWaiting, findWaitingMessages, takeNewMessages } from '../../src/store/mailbox/search.ts'
import { readBacklog } from '../../src/store/sending/backlog.ts'
import { turnAutovacuumOff } from '../support/postgres.ts'
import { idOf, range, setStage } from '../support/search-stage.ts'
import { tearRow } from '../support/torn-rows.ts'
import { until } from '../support/until.ts'

const textOf = ({ fields }: SearchedMail): string => fields.at(-1)!
const large = 'large '.repeat(60_000)

test('hostile 2, 17: another organization’s mail is found two batches later, despite a backlog of large mail', async (t) => {
  const stage = await setStage(t)
  const { addOrganization, file, indexSome, find, rows } = stage
  const others = await addOrganization(['inb_other'])
  for (const n of range(0, 30)) await file([{ n, text: large }])
  for (const n of range(0, 8))
    await file(range(100 + n * 100, 200 + n * 100).map((n) => ({ n, text: 'small' })))
  await stage.take()
  for (let batches = 0; batches < 4; batches++) await indexSome()
  await file([{ n: 2_000, text: 'urgent', inbox: 'inb_other' }], others)
  await stage.take()
  let batches = 0
  while ((await find('urgent', { inbox: 'inb_other' })).length === 0) {
    assert.ok(batches < 3, 'it is not found after two batches, and one run that begins a part for it')
    await indexSome()
    batches++
  }
  assert.ok((await rows('search_waiting')) > 800, 'the backlog goes on')
  await stage.index()
  assert.equal(await rows('message_search'), 831)
})

test('hostile 17: no organization has a second message indexed before each has a first', async (t) => {
  const stage = await setStage(t)
  const { addOrganization, file, index } = stage
  const names = range(0, 40).map((n) => `org${n}`)
  for (const [o, name] of names.entries()) {
    const id = await addOrganization([name])
    for (const n of range(0, 3))
      await file([{ n: o * 3 + n, inbox: name, text: `${name} ${'x '.repeat(50_000)}` }], id)
  }
  const had = new Map(names.map((name) => [name, 0]))
  const words = async (mails: SearchedMail[]) => {
    for (const mail of mails) {
      const name = textOf(mail).split(' ')[0]!
      had.set(name, had.get(name)! + 1)
      assert.ok(Math.max(...had.values()) - Math.min(...had.values()) <= 1, [...had].join(' '))
    }
    return mails.map(() => '')
  }
  await stage.take()
  await index(words)
  assert.deepEqual([...new Set(had.values())], [3])
})

test('hostile 17: messages that cannot be indexed delay only their own organization', async (t) => {
  const stage = await setStage(t)
  const { addOrganization, file, indexSome, index, find, rows } = stage
  const others = await addOrganization(['inb_other'])
  await file(range(0, 200).map((n) => ({ n, text: `poison ${n}` })))
  await file(
    range(300, 303).map((n) => ({ n, text: 'urgent', inbox: 'inb_other' })),
    others,
  )
  const alone: string[] = []
  const words = async (mails: SearchedMail[]) => {
    if (mails.length === 1) alone.push(textOf(mails[0]!).slice(0, 6))
    if (mails.some((mail) => textOf(mail).startsWith('poison'))) throw new NoWords()
    return mails.map(writeVector)
  }
  await stage.take()
  await indexSome(words)
  await indexSome(words)
  assert.deepEqual(await find('urgent', { inbox: 'inb_other' }), [302, 301, 300])
  assert.ok(alone.lastIndexOf('urgent') < 8, alone.slice(0, 10).join(' '))
  await index(words)
  assert.deepEqual([await rows('message_search'), await rows('search_waiting')], [203, 0])
})

test('a message that needs a torn page delays only its own organization, and is found later', async (t) => {
  const stage = await setStage(t)
  const { db, addOrganization, file, indexSome, index, find, rows } = stage
  const others = await addOrganization(['inb_other'])
  await file(range(0, 5).map((n) => ({ n, text: 'first' })))
  await file(
    range(10, 15).map((n) => ({ n, text: 'second', inbox: 'inb_other' })),
    others,
  )
  await stage.take()
  const heal = tearRow(t, db, 'from read_unindexed', idOf(1))
  for (let runs = 0; runs < 4; runs++) await indexSome()
  // It goes to sleep until the next wake-up, instead of reading the torn page again and again.
  assert.equal(await indexSome(), false)
  assert.deepEqual(await find('second', { inbox: 'inb_other' }), [14, 13, 12, 11, 10])
  assert.deepEqual(await find('first'), [0])
  assert.equal(await rows('search_waiting'), 4)
  heal()
  await index()
  assert.deepEqual(await find('first'), [4, 3, 2, 1, 0])
})

/** Pseudo-random numbers, the same for the same seed. */
function makeRandom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

test('search: each message is found exactly once, whatever crashes at any step', async (t) => {
  const stage = await setStage(t)
  const { db, addOrganization, file, find, rows } = stage
  const random = makeRandom(20)
  const inboxes = ['inb_a', 'inb_1', 'inb_2']
  const organizations = [stage.organizationId]
  for (const inbox of inboxes.slice(1)) organizations.push(await addOrganization([inbox]))
  const crash = new Error('crash')
  const rotations = [{ last: null }, { last: null }]
  const olderRotations = [{ last: null }, { last: null }]
  const run = (node: number, words: (mails: SearchedMail[]) => Promise<string[]>) =>
    makeSearchable({
      db,
      log: silentLog,
      parsePool: { words },
      cursor: rotations[node]!,
      olderCursor: olderRotations[node]!,
    })
  const make = async (mails: SearchedMail[]) => mails.map(writeVector)
  const most = () => ({ rows: 1 + random(4), items: 1 + random(60) })
  const passOver = (error: unknown) => assert.equal(error, crash)
  const filed: string[] = []
  const fileSome = async () => {
    const o = random(3)
    const inbox = inboxes[o]!
    const mails = range(filed.length, filed.length + 1 + random(40)).map((n) => ({ n, inbox, text: `w${n}` }))
    filed.push(...mails.map(() => inbox))
    await file(mails, organizations[o])
  }
  const steps = [
    fileSome,
    fileSome,
    // A node is lost between the two steps, during the first, and during the second.
    () => db.transaction((tx) => takeNewMessages(tx, most())),
    () =>
      db.transaction((tx) => takeNewMessages(tx, most()).then(() => Promise.reject(crash))).catch(passOver),
    () => run(random(2), () => Promise.reject(crash)).catch(passOver),
    () => Promise.all([run(0, make), run(1, make)]),
    () => Promise.all([0, 1, 2].map(() => db.transaction((tx) => takeNewMessages(tx, most())))),
  ]
  const step = () => steps[random(steps.length)]!()
  // Any open transaction on the server delays new rows, including those of other tests, for as long as it lasts.
  const open = await db.dedicated()
  await open.query('begin; select pg_current_xact_id()')
  for (let n = 0; n < 40; n++) await step()
  assert.equal(await rows('message_search'), 0)
  await open.query('rollback').finally(() => open.release())
  for (let n = 0; n < 200; n++) await step()
  await until('a step that indexes', async () => {
    await step()
    return (await rows('message_search')) > 0
  })
  await stage.index()
  for (const inbox of inboxes) {
    const own = range(0, filed.length).filter((n) => filed[n] === inbox)
    assert.deepEqual((await find('w*', { inbox, limit: filed.length })).reverse(), own)
    for (const n of own.slice(-10)) assert.deepEqual(await find(`w${n}`, { inbox }), [n])
  }
  assert.deepEqual([await rows('message_search'), await rows('search_waiting')], [filed.length, 0])
})

/** Rows of `search_waiting` that this connection has read and not reported yet. */
async function rowsRead(tx: Queryable): Promise<number> {
  const [row] = await tx.query<{ rows: number }>(
    `select coalesce(idx_tup_fetch, 0) + seq_tup_read as rows from pg_stat_xact_user_tables where relname = 'search_waiting'`,
  )
  return row!.rows
}

test('search: a batch costs the same among thousands of organizations and with a long backlog', async (t) => {
  // One connection, so that the plans made over an empty table are the plans that run.
  const stage = await setStage(t, 1)
  const { db, file, index } = stage
  await turnAutovacuumOff(db)
  await file([{ n: 1, text: 'word' }])
  await index()
  await db.query(
    `insert into search_waiting (organization_id, message_id, announced_at)
    select ('00000000-0000-7000-8000-' || lpad(o::text, 12, '0'))::uuid, 'msg_' || n, now()
    from generate_series(1, 5000) o, generate_series(1, case when o = 7 then 20000 else 3 end) n`,
  )
  for (const state of ['planned over an empty table', 'analyzed']) {
    const seen = new Set<OrganizationId>()
    let last: OrganizationId | null = null
    for (let n = 0; n < 5; n++) {
      const [rows, turns] = await db.transaction(async (tx) => {
        const before = await rowsRead(tx)
        const turns = await findWaitingMessages(tx, last, 128)
        await dropWaiting(tx, turns)
        return [(await rowsRead(tx)) - before, turns] as const
      })
      assert.ok(rows < 450, `${state}: ${rows} rows`)
      assert.ok(turns.length > 90)
      for (const { organizationId } of turns) seen.add(organizationId)
      last = turns[31]!.organizationId
    }
    assert.equal(seen.size, 5 * 32)
    await db.query('analyze')
  }
})

test('search: waiting messages count as unindexed, and are deleted with their organization', async (t) => {
  const stage = await setStage(t)
  const { db, organizationId, addOrganization, file, index, rows } = stage
  const others = await addOrganization(['inb_other'])
  const lag = async () => (await readBacklog(db, new Date(), 10)).oldestUnindexedAt
  assert.equal(await lag(), null)
  await file(range(0, 3).map((n) => ({ n, text: 'word' })))
  const since = await lag()
  assert.ok(since)
  await file([{ n: 3, text: 'word', inbox: 'inb_other' }], others)
  await stage.take()
  assert.deepEqual([await lag(), await rows('search_waiting')], [since, 4])
  for (const table of ownTables)
    while ((await db.transaction((tx) => removeOwnRows(tx, table, organizationId, 2))) > 0);
  assert.equal(await rows('search_waiting'), 1)
  await index()
  assert.deepEqual([await lag(), await rows('search_waiting'), await rows('message_search')], [null, 0, 1])
})
