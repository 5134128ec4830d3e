// The first search of an inbox indexes it: newest messages at once, the others soon, no other inbox. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as yieldLoop } from 'node:timers/promises'
import { Clock } from '../../src/base/clock.ts'
import type { InboxId, OrganizationId } from '../../src/base/ids.ts'
import { silentLog } from '../../src/base/log.ts'
import { makeSearchable } from '../../src/flow/searching/make-searchable.ts'
import { InboxSearches } from '../../src/flow/searching/search-inbox.ts'
import { endSearches } from '../../src/flow/upkeep/end-searches.ts'
import { NoWords } from '../../src/mail/parse-pool.ts'
import { type SearchedMail, writeVector } from '../../src/mail/read/words.ts'
import { claimIndex, takeNewMessages } from '../../src/store/mailbox/search.ts'
import {
  beginSearch,
  endSearch,
  extendSearch,
  findOlder,
  noteSearch,
} from '../../src/store/mailbox/searched-inboxes.ts'
import { range, setStage } from '../support/search-stage.ts'
import { until } from '../support/until.ts'

type Stage = Awaited<ReturnType<typeof setStage>>

const textOf = ({ fields }: SearchedMail): string => fields.at(-1)!
const make = async (mails: SearchedMail[]) => mails.map(writeVector)

function searchesOf({ db }: Stage, words = make, clock = new Clock()): InboxSearches {
  return new InboxSearches({ db, clock, log: silentLog, parsePool: { words } })
}

async function fileMany({ file }: Stage, count: number, inbox: string, organization: OrganizationId) {
  for (let at = 1; at <= count; at += 256) {
    const numbers = range(at, Math.min(at + 256, count + 1))
    await file(
      numbers.map((n) => ({ n, inbox, text: `word w${n}` })),
      organization,
    )
  }
}

test('search: an inbox that was never searched has no index', async (t) => {
  const stage = await setStage(t)
  const { db, addUnsearched, file, index, rows } = stage
  const id = await addUnsearched(['inb_never'])
  await fileMany(stage, 20, 'inb_never', id)
  await file([{ n: 100, text: 'word' }])
  await index()
  assert.equal(await rows('message_search'), 1)
  for (const table of ['message_search', 'search_part', 'search_waiting', 'searched_inbox'])
    assert.deepEqual(await db.query(`select from ${table} where organization_id = $1`, [id]), [], table)
})

test('search: the first search of 3,000 messages answers from the newest at once, a later one from all', async (t) => {
  const stage = await setStage(t)
  const { addUnsearched, index, find, rows } = stage
  const organizationId = await addUnsearched(['inb_big'])
  await fileMany(stage, 3_000, 'inb_big', organizationId)
  const inbox = { id: 'inb_big' as InboxId, organizationId }
  const searches = searchesOf(stage)
  t.after(() => searches.stop())
  const startedMs = performance.now()
  const answers = await Promise.all(range(0, 5).map(() => searches.prepare(inbox)))
  assert.ok(performance.now() - startedMs < 5_000, 'nobody waits for all of them')
  assert.deepEqual(answers, [false, false, false, false, false])
  const first = await find('word', { inbox: 'inb_big', limit: 5_000 })
  assert.ok(first.length > 0 && first.length <= 2_000, `${first.length} of them`)
  assert.deepEqual(first, range(3_001 - first.length, 3_001).reverse())
  await index()
  assert.equal(await searches.prepare(inbox), true)
  assert.deepEqual(await find('w1', { inbox: 'inb_big' }), [1])
  assert.deepEqual(await find('word', { inbox: 'inb_big', limit: 5_000 }), range(1, 3_001).reverse())
  assert.deepEqual([await rows('message_search'), await rows('search_waiting')], [3_000, 0])
})

test('search: an inbox without mail is complete at once, and new mail is found', async (t) => {
  const stage = await setStage(t)
  const { addUnsearched, file, index, find } = stage
  const organizationId = await addUnsearched(['inb_empty'])
  const searches = searchesOf(stage)
  t.after(() => searches.stop())
  assert.equal(await searches.prepare({ id: 'inb_empty' as InboxId, organizationId }), true)
  await file([{ n: 1, text: 'word', inbox: 'inb_empty' }], organizationId)
  await index()
  assert.deepEqual(await find('word', { inbox: 'inb_empty' }), [1])
})

test('hostile 17: many inboxes that one organization searches at once do not delay another', async (t) => {
  const stage = await setStage(t)
  const { db, addUnsearched, file } = stage
  const names = range(0, 6).map((n) => `inb_many${n}`)
  const many = await addUnsearched(names)
  for (const [i, inbox] of names.entries())
    await file(
      range(i * 200, i * 200 + 200).map((n) => ({ n, inbox, text: 'many' })),
      many,
    )
  const one = await addUnsearched(['inb_one'])
  await file([{ n: 9_000, inbox: 'inb_one', text: 'one' }], one)
  const order: string[] = []
  const hasAsked = async () =>
    (await db.query(`select from searched_inbox where inbox_id = 'inb_one'`)).length === 1
  const words = async (mails: SearchedMail[]) => {
    if (order.length === 0) await until('the other organization to have asked', hasAsked)
    order.push(textOf(mails[0]!))
    return mails.map(writeVector)
  }
  const searches = searchesOf(stage, words)
  const preparing = names.map((id) => searches.prepare({ id: id as InboxId, organizationId: many }))
  preparing.push(searches.prepare({ id: 'inb_one' as InboxId, organizationId: one }))
  await Promise.all(preparing)
  await searches.stop()
  // A batch is 16 calls of 8 mails each.
  const before = order.indexOf('one')
  assert.ok(before >= 0 && before <= 3 * 16, `${before} calls came before`)
})

test('check 97: an older message that cannot be indexed is skipped, and the others are not', async (t) => {
  const stage = await setStage(t)
  const { addUnsearched, activate, file, index, find } = stage
  const id = await addUnsearched(['inb_old'])
  const mails = range(0, 40).map((n) => ({ n, inbox: 'inb_old', text: n === 17 ? 'poison word' : 'word' }))
  await file(mails, id)
  await activate(['inb_old'])
  await index(async (some) => {
    if (some.some((mail) => textOf(mail).includes('poison'))) throw new NoWords()
    return some.map(writeVector)
  })
  const wanted = range(0, 40).filter((n) => n !== 17)
  assert.deepEqual(await find('word', { inbox: 'inb_old' }), wanted.reverse())
})

test('search: an index without use for 30 days is dropped, and returns with the next search', async (t) => {
  const stage = await setStage(t)
  const { db, addUnsearched, file, index, find, rows } = stage
  const organizationId = await addUnsearched(['inb_rare'])
  await fileMany(stage, 300, 'inb_rare', organizationId)
  const clock = new Clock()
  const inbox = { id: 'inb_rare' as InboxId, organizationId }
  const searches = searchesOf(stage, make, clock)
  t.after(() => searches.stop())
  await searches.prepare(inbox)
  await index()
  const day = 86_400_000
  const used = async (at: Date) => {
    for (const id of ['inb_a', 'inb_b']) await db.transaction((tx) => noteSearch(tx, id as InboxId, at))
  }
  const startMs = clock.nowMs()
  const on = (days: number) => ({
    now: () => new Date(startMs + days * day),
    nowMs: () => startMs + days * day,
  })
  const end = async (days: number) => {
    while (await endSearches({ db, clock: on(days) as Clock }, 100));
  }
  await used(new Date(startMs + 60 * day))
  await end(29)
  assert.equal(await rows('message_search'), 300)
  // A search during the removal makes the index complete again.
  assert.equal(await endSearches({ db, clock: on(31) as Clock }, 100), true)
  assert.equal(await rows('message_search'), 200)
  await file([{ n: 301, inbox: 'inb_rare', text: 'word' }], organizationId)
  await index()
  assert.equal(await rows('message_search'), 200)
  await searchesOf(stage, make, on(31) as Clock).prepare(inbox)
  await index()
  assert.deepEqual(await find('word', { inbox: 'inb_rare', limit: 500 }), range(1, 302).reverse())
  await searchesOf(stage, make, on(50) as Clock).prepare(inbox)
  await end(79)
  assert.equal(await rows('message_search'), 301)
  await end(81)
  for (const table of ['message_search', 'search_part', 'searched_inbox'])
    assert.deepEqual(await db.query(`select from ${table} where inbox_id = 'inb_rare'`), [], table)
  await searches.prepare(inbox)
  await index()
  assert.deepEqual(await find('word', { inbox: 'inb_rare', limit: 500 }), range(1, 302).reverse())
})

test('search: mail filed during an inbox’s first search is found once', async (t) => {
  const stage = await setStage(t, 32)
  const { db, addUnsearched, file, index, find, rows } = stage
  const names = range(0, 8).map((n) => `inb_busy${n}`)
  const organizationId = await addUnsearched(names)
  await db.query(`delete from searched_inbox`)
  const searches = searchesOf(stage)
  t.after(() => searches.stop())
  let [next, isFiling] = [0, true]
  const filed = new Map(names.map((name) => [name, [] as number[]]))
  const filers = [0, 2, 10, 50].map(async (yields) => {
    for (let k = yields; isFiling; k++) {
      const inbox = names[k % names.length]!
      const numbers = range(next, (next += 3))
      const pause = async () => {
        for (let n = 0; n < yields; n++) await yieldLoop()
      }
      const mails = numbers.map((n) => ({ n, inbox, text: 'word' }))
      await file(mails, organizationId, pause)
      filed.get(inbox)!.push(...numbers)
    }
  })
  const rotations = { cursor: { last: null }, olderCursor: { last: null } }
  const running = (async () => {
    while (isFiling) {
      await makeSearchable({ db, log: silentLog, parsePool: { words: make }, ...rotations })
      await yieldLoop()
    }
  })()
  for (const id of names) {
    const before = next
    await until('some more mail', () => next > before + 30)
    await searches.prepare({ id: id as InboxId, organizationId })
  }
  isFiling = false
  await Promise.all([...filers, running])
  await index()
  for (const [inbox, numbers] of filed)
    assert.deepEqual(
      await find('word', { inbox, limit: 10_000 }),
      numbers.sort((a, b) => b - a),
    )
  assert.equal(await rows('message_search'), next)
})

test('search: the first 64 KiB of a text are searched, however many bytes its letters have', async (t) => {
  const { file, index, find } = await setStage(t)
  const long = (letter: string) => `${letter} `.repeat((65_536 - 100) / Buffer.byteLength(`${letter} `))
  const texts = ['ab', 'é', '한', '𐐨'].map((letter) => `${long(letter)}inside ${'- '.repeat(100)}outside`)
  await file(texts.map((text, n) => ({ n, text })))
  await index()
  assert.deepEqual(await find('inside'), [3, 2, 1, 0])
  assert.deepEqual(await find('outside'), [])
})

/** Pseudo-random numbers, the same for the same seed. */
function makeRandom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

for (const seed of range(1, 7))
  test(`search: inboxes that start and stop being searched lose nothing, despite crashes and late mail (${seed})`, async (t) => {
    const stage = await setStage(t)
    const { db, addUnsearched, file, find } = stage
    const random = makeRandom(seed)
    const inboxes = ['inb_1', 'inb_2', 'inb_3'] as InboxId[]
    const organizations = [await addUnsearched(['inb_1', 'inb_2']), await addUnsearched(['inb_3'])]
    const crash = new Error('crash')
    const passOver = (error: unknown) => assert.equal(error, crash)
    const rotations = { cursor: { last: null }, olderCursor: { last: null } }
    const run = (words: typeof make) =>
      makeSearchable({ db, log: silentLog, parsePool: { words }, ...rotations })
    const filed: InboxId[] = []
    /** Received early and filed late. */
    const late: number[] = []
    const fileSome = async () => {
      const o = random(2)
      const inbox = o === 0 ? inboxes[random(2)]! : inboxes[2]!
      const recent = range(filed.length, filed.length + 1 + random(30))
      filed.push(...recent.map(() => inbox))
      const held = recent.filter(() => random(6) === 0)
      const now = recent.filter((n) => !held.includes(n))
      const again = late.filter((n) => filed[n] === inbox && random(3) === 0)
      for (const n of again) late.splice(late.indexOf(n), 1)
      late.push(...held)
      const mails = [...now, ...again].map((n) => ({ n, inbox, text: `word w${n}` }))
      if (mails.length > 0) await file(mails, organizations[o])
    }
    const inbox = () => inboxes[random(3)]!
    const begin = () => db.transaction((tx) => beginSearch(tx, inbox(), 1 + random(20), new Date()))
    const steps = [
      fileSome,
      fileSome,
      fileSome,
      begin,
      () =>
        db
          .transaction((tx) => beginSearch(tx, inbox(), 5, new Date()).then(() => Promise.reject(crash)))
          .catch(passOver),
      () => db.transaction((tx) => takeNewMessages(tx, { rows: 1 + random(4), items: 40 })),
      () => run(() => Promise.reject(crash)).catch(passOver),
      () => Promise.all([run(make), run(make), begin()]),
      // Small parts, so that there are many.
      () => {
        const id = inbox()
        return db.transaction(async (tx) => {
          if ((await claimIndex(tx, 1_000)) && (await findOlder(tx, id, 1)).length === 0)
            await extendSearch(tx, id, 1 + random(12))
        })
      },
      () =>
        random(4) > 0 ||
        db.transaction(async (tx) => {
          if (await claimIndex(tx, 1_000)) await endSearch(tx, new Date(Date.now() + 1e9), 1 + random(40))
        }),
    ]
    for (let n = 0; n < 150; n++) await steps[random(steps.length)]!()
    for (const id of inboxes) await db.transaction((tx) => beginSearch(tx, id, 7, new Date()))
    await fileSome()
    await stage.index()
    for (const id of inboxes) {
      const own = range(0, filed.length).filter((n) => filed[n] === id && !late.includes(n))
      assert.deepEqual(await find('word', { inbox: id, limit: 5_000 }), [...own].reverse())
      const paged: number[] = []
      for (let page: number[] = []; ; paged.push(...page)) {
        page = await find('w*', { inbox: id, limit: 9, before: paged.at(-1) ?? null })
        if (page.length === 0) break
      }
      assert.deepEqual(paged, own.reverse())
    }
  })
