// Claims rotate between organizations: slow mail, however much, delays only its own organization. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { after, beforeEach, type TestContext, test } from 'node:test'
import type { OrganizationId } from '../../src/base/ids.ts'
import type { TimeLimit } from '../../src/base/thread-pool.ts'
import { Claims } from '../../src/flow/claims.ts'
import { fileSlow, fileSpooled } from '../../src/flow/receiving/file.ts'
import { readReports } from '../../src/flow/reports/read-report.ts'
import type { ReportAddress } from '../../src/mail/bounce/report.ts'
import { ParsePool, ParseTimedOut } from '../../src/mail/parse-pool.ts'
import type { Tx } from '../../src/postgres/db.ts'
import { claimWork, putBackWork, type WorkClaimRequest, type WorkKind } from '../../src/store/work.ts'
import type { Message } from '../support/api.ts'
import { addWork, joinAsNode } from '../support/claims.ts'
import { makePlace, startNode } from '../support/node.ts'
import { Sender } from '../support/transaction.ts'
import { until } from '../support/until.ts'

/** This node files nothing and reads no reports by itself. */
const place = await makePlace({ after })
const node = await startNode(place, { roles: ['api', 'mx'] })
const { foundation } = node
const { db, clock } = foundation
const sender = new Sender(node.smtp)
// These scans have no message.
await db.query('alter table scan drop constraint scan_message_id_fkey')

// Rotation covers all organizations, so each test begins with an empty queue.
beforeEach(async () => {
  for (const table of ['spool', 'kept_mail', 'scan']) await db.query(`delete from ${table}`)
})

async function mail(to: string, subject: string, fields = ''): Promise<void> {
  const replies = await sender.send({ to: [to], raw: `Subject: ${subject}\r\n${fields}\r\nHello.\r\n` })
  assert.match(replies.at(-1)!, /^250/)
}

async function organization() {
  const { api, organizationId } = await node.createCaller()
  const inbox = await api.createInbox()
  const subjects = async () => (await api.exported(inbox.id)).map(({ subject }: Message) => subject)
  return { id: organizationId as OrganizationId, address: inbox.address, subjects }
}

/**
 * A reader that is slow for mail marked as slow. It answers when the test releases it or when its time limit ends. `waits`
 * counts how often it was waited for; slow mails that are read together count once.
 */
function slowReader(t: TestContext) {
  const pool = new ParsePool({ threads: 1, timeoutMs: 10_000 })
  t.after(() => pool.close())
  const released = Promise.withResolvers<void>()
  const begun: string[] = []
  let waits = 0
  let waiting = 0
  const wait = async (raw: Uint8Array, timeLimit?: TimeLimit) => {
    const text = Buffer.from(raw).toString()
    const subject = /^Subject: (.*)\r$/m.exec(text)?.[1] ?? ''
    begun.push(subject)
    if (!subject.startsWith('Slow')) return
    const over =
      timeLimit && new Promise<'over'>((resolve) => setTimeout(() => resolve('over'), timeLimit.timeoutMs))
    if (waiting++ === 0) waits++
    const end = await Promise.race([released.promise, over].filter((end) => end !== undefined))
    waiting--
    if (end === 'over') throw new ParseTimedOut()
  }
  return {
    begun,
    waits: () => waits,
    release: () => released.resolve(),
    parse: async (raw: Uint8Array, timeLimit?: TimeLimit) => {
      await wait(raw, timeLimit)
      return await pool.parse(raw)
    },
    report: async (raw: Uint8Array, sentTo?: ReportAddress, timeLimit?: TimeLimit) => {
      await wait(raw, timeLimit)
      return await pool.report(raw, sentTo)
    },
  }
}

type Reader = ReturnType<typeof slowReader>

/** The workers of a node, run by the test itself. */
async function makeWorkers(t: TestContext, parsePool: Reader) {
  const { claims } = await joinAsNode(t, foundation)
  const slow = new Set<OrganizationId>()
  const worker = () => ({ ...foundation, parsePool, slow, claims: claims('mail') })
  const [quick, patient] = [worker(), worker()]
  return {
    slowOnes: slow,
    first: (limit = 64) => fileSpooled(quick, limit),
    slow: () => fileSlow(patient, 64),
  }
}

/** Claims as a node of its own and releases at once. Returns the claimed work by organization. */
async function makeClaims(t: TestContext, kind: WorkKind) {
  const claims = (await joinAsNode(t, foundation)).claims(kind)
  const [table, id] = { mail: ['spool', 'id'], report: ['kept_mail', 'id'], scan: ['scan', 'message_id'] }[
    kind
  ]
  return async (wanted: Partial<WorkClaimRequest>) => {
    const { claim, ids, last, isMore } = (await claims.take({ limit: 64, maxBytes: 1 << 20, ...wanted }))!
    await claims.giveBack(claim, ids)
    const rows = await db.query<{ organization: OrganizationId }>(
      `select organization_id as organization from ${table} where ${id} = any($1)`,
      [ids],
    )
    return { last, isMore, of: rows.map(({ organization }) => organization) }
  }
}

const nth = (place: number) => `00000000-0000-7000-8000-${String(place).padStart(12, '0')}`

async function readOf(tx: Tx, table: string): Promise<number> {
  const [counts] = await tx.query<{ read: number }>(
    'select coalesce(idx_tup_fetch, 0) + seq_tup_read as read from pg_stat_xact_user_tables where relname = $1',
    [table],
  )
  return counts!.read
}

// Runs first: its statements are planned over tables that were never large.
test('hostile 17: a claim costs the same among ten and among five thousand organizations', async (t) => {
  const { id: owner } = await joinAsNode(t, foundation)
  for (const [kind, table] of [
    ['mail', 'spool'],
    ['report', 'kept_mail'],
    ['scan', 'scan'],
  ] as const) {
    const rows = Array.from({ length: 15_000 }, (_, i) => ({
      id: `${i}`,
      organization: nth(1 + (i % 5_000)),
    }))
    await addWork(foundation, kind, rows)
    const seen = new Set<string>()
    let last: OrganizationId | null = null
    for (let i = 0; i < 5; i++) {
      const { read, work } = await db.transaction(async (tx) => {
        const wanted = { limit: 64, maxBytes: 1 << 20, after: last }
        // The statistics may still count reads of earlier transactions.
        const before = await readOf(tx, table)
        const work = await claimWork(tx, { kind, owner, at: clock.now() }, wanted)
        return { read: (await readOf(tx, table)) - before, work }
      })
      assert.ok(read < 300, `${read} rows of ${table}`)
      assert.equal(work.ids.length, 64)
      last = work.last
      for (const id of work.ids) seen.add(nth(1 + (Number(id) % 5_000)))
    }
    assert.equal(seen.size, 5 * 32, table)
    await db.query(`delete from ${table}`)
  }
})

test('hostile 17: mail that is slow to read delays only its own organization, and keeps its order', async (t) => {
  const [theirs, ours] = [await organization(), await organization()]
  const reader = slowReader(t)
  const workers = await makeWorkers(t, reader)
  await mail(theirs.address, 'First', 'Message-ID: <first@far.test>\r\n')
  for (let i = 0; i < 6; i++) await mail(theirs.address, `Slow ${i}`)
  await mail(theirs.address, 'Answer', 'In-Reply-To: <slow@far.test>\r\n')
  await mail(ours.address, 'Plain')
  while (await workers.first());
  assert.deepEqual(await ours.subjects(), ['Plain'])
  assert.equal(reader.waits(), 1)
  // Mail before the slow one is filed. Mail behind it is not.
  assert.deepEqual(await theirs.subjects(), ['First'])
  assert.ok(reader.begun.length <= 9)
  assert.deepEqual([...workers.slowOnes], [theirs.id])
  const slow = workers.slow()
  await until('the slow worker to read', () => reader.begun.at(-1) === 'Slow 0')
  await mail(ours.address, 'Later')
  await workers.first()
  assert.deepEqual(await ours.subjects(), ['Plain', 'Later'])
  assert.deepEqual(await theirs.subjects(), ['First'])
  reader.release()
  await slow
  while (await workers.slow());
  assert.deepEqual(await theirs.subjects(), [
    'First',
    ...[0, 1, 2, 3, 4, 5].map((i) => `Slow ${i}`),
    'Answer',
  ])
  assert.equal(workers.slowOnes.size, 0)
})

test('hostile 17: a batch has mail of every organization, however much one of them has', async (t) => {
  const much = await organization()
  const others = [await organization(), await organization()]
  for (let i = 0; i < 20; i++) await mail(much.address, `Much ${i}`)
  for (const { address } of others) await mail(address, 'Plain')
  const claim = await makeClaims(t, 'mail')
  const batch = await claim({ limit: 9 })
  for (const { id } of others) assert.ok(batch.of.includes(id))
  assert.ok(batch.isMore)
  // With one mail per claim, the organizations alternate in a fixed order.
  const seen: OrganizationId[] = []
  for (let last: OrganizationId | null = null; seen.length < 6; ) {
    const one = await claim({ limit: 1, after: last })
    last = one.last
    seen.push(...one.of)
  }
  assert.deepEqual(seen.slice(0, 3), seen.slice(3))
  assert.equal(new Set(seen).size, 3)
  assert.ok(!(await claim({ passedOver: [much.id] })).of.includes(much.id))
})

test('hostile 17: work that must be claimed alone is claimed, however much others add', async (t) => {
  const { id: owner } = await joinAsNode(t, foundation)
  const table = { mail: 'spool', report: 'kept_mail' }
  for (const kind of ['mail', 'report'] as const)
    for (const alone of [{ failures: 1 }, { size: 2_000 }]) {
      await addWork(foundation, kind, [{ id: 'alone', organization: nth(2), ...alone }])
      await addWork(foundation, kind, [{ id: 'behind', organization: nth(2) }])
      let last: OrganizationId | null = null
      const rounds: string[][] = []
      while (!rounds.flat().includes('behind') && rounds.length < 10) {
        const others = [1, 3].map((place) => ({
          id: `${rounds.length} of ${place}`,
          organization: nth(place),
        }))
        await addWork(foundation, kind, others)
        clock.advance(10)
        const wanted = { limit: 64, maxBytes: 1_000, after: last }
        const work = await claimWork(db.writer, { kind, owner, at: clock.now() }, wanted)
        last = work.last
        rounds.push(work.ids.sort())
        await db.query(`delete from ${table[kind]} where id = any($1)`, [work.ids])
      }
      // The slow row stops this batch and starts the next one. The round continues after it, so no organization is left out.
      assert.deepEqual(rounds, [
        ['0 of 1'],
        ['alone'],
        ['0 of 3', '1 of 1', '1 of 3', '2 of 1', '2 of 3', 'behind'],
      ])
      await db.query(`delete from ${table[kind]}`)
    }
})

test('hostile 17: mail that failed once is filed in time with the mail of others', async (t) => {
  const three = [await organization(), await organization(), await organization()]
  const [before, theirs, behind] = three.sort((a, b) => (a.id < b.id ? -1 : 1))
  const workers = await makeWorkers(t, slowReader(t))
  await mail(theirs!.address, 'Failed')
  await db.query('update spool set failures = 1')
  for (let round = 0; round < 3; round++) {
    for (const { address } of [before!, behind!]) await mail(address, `Round ${round}`)
    clock.advance(10)
    await workers.first()
  }
  assert.deepEqual(await theirs!.subjects(), ['Failed'])
})

test('hostile 17: slow complaints delay neither bounces nor mail', async (t) => {
  const ours = await organization()
  const reader = slowReader(t)
  for (let i = 0; i < 6; i++) await mail('fbl@inbox.test', `Slow ${i}`)
  const reports = { ...foundation, parsePool: reader }
  const reading = { ...reports, claims: (await joinAsNode(t, foundation)).claims('report') }
  await mail('fbl@inbox.test', 'Bounce')
  // Sets the organization, as if the return path had named it.
  await db.query(
    `update kept_mail set organization_id = $1 where raw_id in (select id from raw where position('Bounce'::bytea in bytes) > 0)`,
    [ours.id],
  )
  const batch = await (await makeClaims(t, 'report'))({ limit: 2 })
  assert.ok(batch.of.includes(ours.id))
  await readReports(reading, 64)
  assert.equal(reader.waits(), 1)
  const left = await db.query<{ failures: number; organizationId: string | null }>(
    'select failures, organization_id as "organizationId" from kept_mail order by received_at',
  )
  assert.equal(left.length, 6)
  assert.deepEqual([...new Set(left.map(({ organizationId }) => organizationId))], [null])
  assert.equal(left.filter(({ failures }) => failures === 1).length, 1)
})

test('hostile 17: scanning alternates organizations, and skips those with enough scans under way', async (t) => {
  const [theirs, ours] = [await organization(), await organization()]
  const workers = await makeWorkers(t, slowReader(t))
  const attached = 'Content-Type: application/zip\r\nContent-Disposition: attachment; filename=a.zip\r\n'
  for (let i = 0; i < 3; i++) await mail(theirs.address, `Theirs ${i}`, attached)
  await mail(ours.address, 'Ours', attached)
  while (await workers.first());
  const claims = await makeClaims(t, 'scan')
  const claim = async (after: OrganizationId | null, passedOver: OrganizationId[] = []) =>
    (await claims({ limit: 1, after, passedOver })).of[0]
  const order = [theirs.id, ours.id].sort()
  assert.deepEqual([await claim(null), await claim(order[0]!), await claim(order[1]!)], [...order, order[0]])
  assert.equal(await claim(ours.id, [theirs.id]), ours.id)
  assert.equal(await claim(null, [theirs.id, ours.id]), undefined)
})

const owner = '00000000-0000-7000-8000-000000000001'
const wanted = { limit: 64, maxBytes: 1 << 20 }

for (const [kind, table] of [
  ['mail', 'spool'],
  ['report', 'kept_mail'],
  ['scan', 'scan'],
] as const)
  test(`${kind}: a claim belongs to its node until it is returned, it expires, or the node is gone`, async (t) => {
    await addWork(foundation, kind, [{ id: 'one', organization: owner }])
    const failures = async () =>
      (await db.query<{ failures: number }>(`select failures from ${table}`))[0]!.failures
    const [first, second] = [await joinAsNode(t, foundation), await joinAsNode(t, foundation)]
    const [mine, theirs] = [first.claims(kind), second.claims(kind)]
    const { claim, ids } = (await mine.take(wanted))!
    assert.deepEqual(ids, ['one'])
    for (const claims of [mine, theirs]) assert.deepEqual((await claims.take(wanted))!.ids, [])
    await mine.giveBack(claim, ids)
    assert.equal(await failures(), 0)

    const late = (await mine.take(wanted))!
    assert.deepEqual(late.ids, ['one'])
    await db.query(`update ${table} set claimed_until = now() - interval '1 s'`)
    const taken = (await theirs.take(wanted))!
    assert.deepEqual([taken.ids, await failures()], [['one'], 1])
    assert.deepEqual(await putBackWork(db.writer, late.claim, ['one'], { failures: 1 }), [])
    assert.equal(await failures(), 1)

    await second.leave()
    const [again] = (await mine.take(wanted))!.ids
    assert.deepEqual([again, await failures()], ['one', 2])
    assert.deepEqual(await putBackWork(db.writer, taken.claim, ['one']), [])
  })

test('a node without a number claims nothing', async () => {
  await addWork(foundation, 'mail', [{ id: 'one', organization: owner }])
  const claims = new Claims({ db, clock, nodeId: () => null }, 'mail')
  assert.equal(await claims.take(wanted), null)
})

test('work whose claim was lost is claimed alone', async (t) => {
  await addWork(
    foundation,
    'mail',
    ['one', 'two', 'three'].map((id) => ({ id, organization: owner })),
  )
  const lost = await joinAsNode(t, foundation)
  assert.equal((await lost.claims('mail').take({ ...wanted, limit: 2 }))!.ids.length, 2)
  await lost.leave()
  const claims = (await joinAsNode(t, foundation)).claims('mail')
  const counts: number[] = []
  for (;;) {
    const { ids } = (await claims.take(wanted))!
    if (ids.length === 0) break
    counts.push(ids.length)
  }
  assert.deepEqual(counts, [1, 1, 1])
})

test('concurrent claims share the work, each with some and none with the same', async (t) => {
  const all = Array.from({ length: 300 }, (_, i) => ({ id: `${i}`, organization: owner }))
  await addWork(foundation, 'mail', all)
  const { claims } = await joinAsNode(t, foundation)
  const taken = await Promise.all(
    Array.from({ length: 6 }, () => claims('mail').take({ ...wanted, limit: 50 })),
  )
  assert.deepEqual(
    taken.map((one) => one!.ids.length),
    Array(6).fill(50),
  )
  assert.equal(new Set(taken.flatMap((one) => one!.ids)).size, 300)
})
