// Turns between organizations: mail that is slow to read, and however much of it, holds up its own and nobody else's.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { OrganizationId } from '../../src/base/ids.ts'
import { Rotation } from '../../src/base/rotation.ts'
import type { TimeLimit } from '../../src/base/thread-pool.ts'
import { Tickets } from '../../src/base/tickets.ts'
import { UnderWay } from '../../src/base/under-way.ts'
import { fileSlow, fileSpooled } from '../../src/flow/receiving/file.ts'
import { readReports } from '../../src/flow/reports/read-report.ts'
import type { ReportAddress } from '../../src/mail/bounce/report.ts'
import { ParsePool, ParseTimedOut } from '../../src/mail/parse-pool.ts'
import { claimReports } from '../../src/store/kept-mail.ts'
import { claimScan } from '../../src/store/scans.ts'
import { claimSpool } from '../../src/store/spool.ts'
import { claimWork } from '../../src/store/work.ts'
import type { Message } from '../support/api.ts'
import { makePlace, type Place, startNode, type TestNode } from '../support/node.ts'
import { Sender } from '../support/transaction.ts'
import { until } from '../support/until.ts'

/** A reader of mail to which one that says so is slow: it answers when it is let go, or when patience is at its end. */
function slowReader(t: TestContext) {
  const pool = new ParsePool({ threads: 1, timeoutMs: 10_000 })
  t.after(() => pool.close())
  const released = Promise.withResolvers<void>()
  const begun: string[] = []
  const wait = async (raw: Uint8Array, timeLimit?: TimeLimit) => {
    const text = Buffer.from(raw).toString()
    const subject = /^Subject: (.*)\r$/m.exec(text)?.[1] ?? ''
    begun.push(subject)
    if (!subject.startsWith('Slow')) return
    const over =
      timeLimit && new Promise<'over'>((resolve) => setTimeout(() => resolve('over'), timeLimit.timeoutMs))
    if ((await Promise.race([released.promise, over].filter((end) => end !== undefined))) === 'over')
      throw new ParseTimedOut()
  }
  return {
    begun,
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

/** The lines of a node, which a test runs by itself. */
function makeLines({ foundation }: TestNode, { folder }: Place, parsePool: Reader) {
  const shared = { ...foundation, parsePool, rotation: new Rotation(), tickets: new Tickets() }
  const line = (only = {}) => ({ ...shared, underWay: new UnderWay(join(folder, randomUUID())), ...only })
  const [first, beside, slow] = [
    line(),
    line({ maxFailures: 0, rotation: new Rotation(shared.rotation.slow) }),
    line({ tickets: new Tickets() }),
  ]
  return {
    rotation: shared.rotation,
    first: (limit = 64) => fileSpooled(first, limit),
    beside: (limit = 64) => fileSpooled(beside, limit),
    slow: () => fileSlow(slow, 64),
  }
}

async function setStage(t: TestContext) {
  const place = await makePlace(t)
  const node = await startNode(place, { roles: ['api', 'mx'] })
  const sender = new Sender(node.smtp)
  const mail = async (to: string, subject: string, fields = '') => {
    const replies = await sender.send({ to: [to], raw: `Subject: ${subject}\r\n${fields}\r\nHello.\r\n` })
    assert.match(replies.at(-1)!, /^250/)
  }
  const organization = async (name: string) => {
    const { api, organizationId } = await node.createCaller()
    const inbox = await api.createInbox(name)
    const subjects = async () => (await api.exported(inbox.id)).map(({ subject }: Message) => subject)
    return { id: organizationId as OrganizationId, address: inbox.address, subjects, api, inbox }
  }
  return { place, node, mail, organization }
}

test('hostile 17: mail that is slow to read holds up its own organization alone, and its order stays', async (t) => {
  const { place, node, mail, organization } = await setStage(t)
  const [theirs, ours] = [await organization('theirs'), await organization('ours')]
  const reader = slowReader(t)
  const lines = makeLines(node, place, reader)
  await mail(theirs.address, 'First', 'Message-ID: <first@far.test>\r\n')
  for (let i = 0; i < 6; i++) await mail(theirs.address, `Slow ${i}`)
  await mail(theirs.address, 'Answer', 'In-Reply-To: <slow@far.test>\r\n')
  await mail(ours.address, 'Plain')
  const startMs = performance.now()
  while (await lines.first());
  assert.deepEqual(await ours.subjects(), ['Plain'])
  assert.ok(performance.now() - startMs < 2_000)
  // What came before the slow one is filed; nothing behind it is.
  assert.deepEqual(await theirs.subjects(), ['First'])
  assert.ok(reader.begun.length <= 9)
  assert.deepEqual([...lines.rotation.slow], [theirs.id])
  const slow = lines.slow()
  await until('the slow line to read', () => reader.begun.at(-1) === 'Slow 0')
  await mail(ours.address, 'Later')
  await lines.first()
  assert.deepEqual(await ours.subjects(), ['Plain', 'Later'])
  assert.deepEqual(await theirs.subjects(), ['First'])
  reader.release()
  await slow
  while (await lines.slow());
  assert.deepEqual(await theirs.subjects(), [
    'First',
    ...[0, 1, 2, 3, 4, 5].map((i) => `Slow ${i}`),
    'Answer',
  ])
  assert.equal(lines.rotation.slow.size, 0)
})

test('hostile 17: what a second line had read of an organization that was found slow waits for its turn', async (t) => {
  const { place, node, mail, organization } = await setStage(t)
  const theirs = await organization('theirs')
  const reader = slowReader(t)
  const lines = makeLines(node, place, reader)
  await mail(theirs.address, 'Slow', 'Message-ID: <slow@far.test>\r\n')
  await mail(theirs.address, 'Re: Slow', 'In-Reply-To: <slow@far.test>\r\n')
  const first = lines.first(1)
  await until('the slow one to be taken', () => reader.begun.length === 1)
  await Promise.all([first, lines.beside()])
  assert.deepEqual(await theirs.subjects(), [])
  reader.release()
  while (await lines.slow());
  const messages = await theirs.api.exported(theirs.inbox.id)
  assert.deepEqual(
    messages.map(({ subject }) => subject),
    ['Slow', 'Re: Slow'],
  )
  assert.equal(new Set(messages.map(({ threadId }) => threadId)).size, 1)
})

test('hostile 17: a batch has mail of every organization, however much one of them has', async (t) => {
  const { node, mail, organization } = await setStage(t)
  const much = await organization('much')
  const others = [await organization('one'), await organization('two')]
  for (let i = 0; i < 20; i++) await mail(much.address, `Much ${i}`)
  for (const { address } of others) await mail(address, 'Plain')
  const { db, clock } = node.foundation
  const claim = (limit: number, behind: OrganizationId | null, passedOver: OrganizationId[] = []) =>
    db.transaction(async (tx) => {
      const claimed = await claimSpool(tx, clock.now(), { limit, maxBytes: 1 << 20, behind, passedOver })
      return { ...claimed, of: claimed.taken.map(({ organizationId }) => organizationId) }
    })
  const batch = await claim(9, null)
  for (const { id } of others) assert.ok(batch.of.includes(id))
  assert.ok(batch.isMore)
  // One at a time: each has its turn, round and round.
  const seen: OrganizationId[] = []
  for (let last: OrganizationId | null = null; seen.length < 6; ) {
    const one = await claim(1, last)
    last = one.last
    seen.push(...one.of)
  }
  assert.deepEqual(seen.slice(0, 3), seen.slice(3))
  assert.equal(new Set(seen).size, 3)
  assert.ok(!(await claim(64, null, [much.id])).of.includes(much.id))
})

/** What stands for work in a test: nothing of it is read, and all of it goes at the end. */
async function addWork(
  { db, clock }: TestNode['foundation'],
  kind: 'mail' | 'report' | 'scan',
  rows: { id: string; organization: string; failures?: number; size?: number }[],
): Promise<void> {
  const insert = {
    mail: `insert into spool (id, organization_id, inbox_id, raw_id, size_bytes, envelope, received_at, failures, due_at)
      select id, organization, '', gen_random_uuid(), size, '{}', $2, failures, $2`,
    report: `insert into kept_mail (id, purpose, address, organization_id, raw_id, size_bytes, envelope, received_at, failures)
      select id, 'return_path', '', organization, gen_random_uuid(), size, '{}', $2, failures`,
    scan: 'insert into scan (message_id, organization_id, failures, due_at) select id, organization, failures, $2::timestamptz',
  }
  await db.query(
    `${insert[kind]} from jsonb_to_recordset($1) as x(id text, organization uuid, failures integer, size integer)`,
    [JSON.stringify(rows.map((row) => ({ failures: 0, size: 1, ...row }))), clock.now()],
  )
}

const nth = (place: number) => `00000000-0000-7000-8000-${String(place).padStart(12, '0')}`

test('hostile 17: a claim costs the same among ten and among five thousand organizations', async (t) => {
  const { node } = await setStage(t)
  const { db, clock } = node.foundation
  // A scan has no need of its message here.
  await db.query('alter table scan drop constraint scan_message_id_fkey')
  for (const [kind, table] of [
    ['mail', 'spool'],
    ['report', 'kept_mail'],
    ['scan', 'scan'],
  ] as const) {
    const rows = Array.from({ length: 15_000 }, (_, i) => ({
      id: `${i}`,
      organization: nth(1 + (i % 5_000)),
    }))
    await addWork(node.foundation, kind, rows)
    const seen = new Set<string>()
    let last: OrganizationId | null = null
    for (let i = 0; i < 5; i++) {
      const { read, work } = await db.transaction(async (tx) => {
        const work = await claimWork(tx, kind, clock.now(), { limit: 64, maxBytes: 1 << 20, behind: last })
        const [counts] = await tx.query<{ read: number }>(
          'select coalesce(idx_tup_fetch, 0) + seq_tup_read as read from pg_stat_xact_user_tables where relname = $1',
          [table],
        )
        return { read: counts!.read, work }
      })
      assert.ok(read < 1_000, `${read} rows of ${table}`)
      assert.equal(work.claimed.length, 64)
      last = work.last
      for (const id of work.claimed) seen.add(nth(1 + (Number(id) % 5_000)))
    }
    assert.equal(seen.size, 5 * 32, table)
    await db.query(`delete from ${table}`)
  }
})

test('hostile 17: what has to be taken alone has its turn, however much others bring meanwhile', async (t) => {
  const { node } = await setStage(t)
  const { db, clock } = node.foundation
  const table = { mail: 'spool', report: 'kept_mail' }
  for (const kind of ['mail', 'report'] as const)
    for (const alone of [{ failures: 1 }, { size: 2_000 }]) {
      await addWork(node.foundation, kind, [{ id: 'alone', organization: nth(2), ...alone }])
      await addWork(node.foundation, kind, [{ id: 'behind', organization: nth(2) }])
      let last: OrganizationId | null = null
      const rounds: string[][] = []
      while (!rounds.flat().includes('behind') && rounds.length < 10) {
        const others = [1, 3].map((place) => ({
          id: `${rounds.length} of ${place}`,
          organization: nth(place),
        }))
        await addWork(node.foundation, kind, others)
        clock.advance(10)
        const work = await db.transaction((tx) =>
          claimWork(tx, kind, clock.now(), { limit: 64, maxBytes: 1_000, behind: last }),
        )
        last = work.last
        rounds.push(work.claimed)
        await db.query(`delete from ${table[kind]} where id = any($1)`, [work.claimed])
      }
      // Nobody is left out over it: it stops the look, is the first of the next, and the round goes on behind it.
      assert.deepEqual(rounds, [
        ['0 of 1'],
        ['alone'],
        ['0 of 3', '1 of 3', '2 of 3', '1 of 1', '2 of 1', 'behind'],
      ])
      await db.query(`delete from ${table[kind]}`)
    }
})

test('hostile 17: mail that failed once is filed beside what others bring to both lines', async (t) => {
  const { place, node, mail, organization } = await setStage(t)
  const three = [await organization('one'), await organization('two'), await organization('three')]
  const [before, theirs, behind] = three.sort((a, b) => (a.id < b.id ? -1 : 1))
  const lines = makeLines(node, place, slowReader(t))
  await mail(theirs!.address, 'Failed')
  await node.foundation.db.query('update spool set failures = 1')
  for (let round = 0; round < 3; round++) {
    for (const { address } of [before!, behind!]) await mail(address, `Round ${round}`)
    node.foundation.clock.advance(10)
    await lines.first()
    await lines.beside()
  }
  assert.deepEqual(await theirs!.subjects(), ['Failed'])
})

test('hostile 17: slow complaints hold up neither bounces nor mail that is filed', async (t) => {
  const { place, node, mail, organization } = await setStage(t)
  const ours = await organization('ours')
  const reader = slowReader(t)
  for (let i = 0; i < 6; i++) await mail('fbl@inbox.test', `Slow ${i}`)
  const { db, clock } = node.foundation
  const reports = { ...node.foundation, parsePool: reader, rotation: new Rotation() }
  const reading = { ...reports, underWay: new UnderWay(join(place.folder, randomUUID())) }
  await mail('fbl@inbox.test', 'Bounce')
  // As if its return path had told whose mail it is about.
  await db.query(
    `update kept_mail set organization_id = $1 where raw_id in (select id from raw where position('Bounce'::bytea in bytes) > 0)`,
    [ours.id],
  )
  const batch = await db.transaction((tx) =>
    claimReports(tx, clock.now(), { limit: 2, maxBytes: 1 << 20, behind: null }),
  )
  assert.ok(batch.taken.some(({ organizationId }) => organizationId === ours.id))
  const startMs = performance.now()
  await readReports(reading, 64)
  assert.ok(performance.now() - startMs < 3_000)
  const left = await db.query<{ failures: number; organizationId: string | null }>(
    'select failures, organization_id as "organizationId" from kept_mail order by received_at',
  )
  assert.equal(left.length, 6)
  assert.deepEqual([...new Set(left.map(({ organizationId }) => organizationId))], [null])
  assert.equal(left.filter(({ failures }) => failures === 1).length, 1)
})

test('hostile 17: scanning takes organizations in turn, and passes over those that have their lines', async (t) => {
  const { place, node, mail, organization } = await setStage(t)
  const [theirs, ours] = [await organization('theirs'), await organization('ours')]
  const lines = makeLines(node, place, slowReader(t))
  const attached = 'Content-Type: application/zip\r\nContent-Disposition: attachment; filename=a.zip\r\n'
  for (let i = 0; i < 3; i++) await mail(theirs.address, `Theirs ${i}`, attached)
  await mail(ours.address, 'Ours', attached)
  while (await lines.first());
  const { db, clock } = node.foundation
  const claim = (behind: OrganizationId | null, passedOver: OrganizationId[] = []) =>
    db.transaction(
      async (tx) => (await claimScan(tx, clock.now(), { behind, passedOver })).job?.organizationId,
    )
  const order = [theirs.id, ours.id].sort()
  assert.deepEqual([await claim(null), await claim(order[0]!), await claim(order[1]!)], [...order, order[0]])
  assert.equal(await claim(ours.id, [theirs.id]), ours.id)
  assert.equal(await claim(null, [theirs.id, ours.id]), undefined)
})
