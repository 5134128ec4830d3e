// Acceptance on two nodes at once: limits and idempotency are exact, and one bad row fails alone. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { Clock } from '../../src/base/clock.ts'
import { ServiceError } from '../../src/base/errors.ts'
import { silentLog } from '../../src/base/log.ts'
import { DiskBlobs } from '../../src/blobs/disk.ts'
import { KeyRing, RequestRate } from '../../src/flow/accounts/authenticate.ts'
import { createKey, hashSecret, unrestricted } from '../../src/flow/accounts/key.ts'
import { createOrganization, defaultLimits } from '../../src/flow/accounts/organization.ts'
import type { Caller } from '../../src/flow/caller.ts'
import { requestHash } from '../../src/flow/idempotency.ts'
import { deleteInbox } from '../../src/flow/mailbox/delete-inbox.ts'
import { deleteMessage } from '../../src/flow/mailbox/delete-message.ts'
import { openInbox } from '../../src/flow/mailbox/open-inbox.ts'
import { ProvedDomains } from '../../src/flow/proved-domains.ts'
import { Acceptance } from '../../src/flow/sending/accept-send.ts'
import { SendContents } from '../../src/flow/sending/send-contents.ts'
import type { MessageBody } from '../../src/flow/sending/send-draft.ts'
import { ParsePool } from '../../src/mail/parse-pool.ts'
import { Db, DbFault } from '../../src/postgres/db.ts'
import { findCallers } from '../../src/store/accounts/keys.ts'
import type { Limits } from '../../src/store/accounts/organizations.ts'
import type { InboxRow } from '../../src/store/mailbox/inboxes.ts'
import { untilLocked } from '../support/lock-waits.ts'
import { makePlace, type Place } from '../support/node.ts'
import { turnAutovacuumOff } from '../support/postgres.ts'
import type { Scope } from '../support/until.ts'

/** Records its faults, and loses the answers of committed acceptances, as a connection that breaks at that moment does. */
class WatchedDb extends Db {
  faults: unknown[] = []
  #losses = 0
  #meanwhile = async () => {}

  /** Loses the next answers. `meanwhile` runs before the acceptance is asked for again. */
  lose(losses: number, meanwhile = async () => {}): void {
    this.#losses = losses
    this.#meanwhile = meanwhile
  }

  override async query<Row>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    const rows = await super.query<Row>(text, values).catch((error) => {
      this.faults.push(error)
      throw error
    })
    if (this.#losses === 0 || !text.includes('decide_sends')) return rows
    this.#losses--
    await this.#meanwhile()
    throw new DbFault(Object.assign(new Error('the connection was lost'), { code: '08006' }))
  }
}

class Node {
  readonly db: WatchedDb
  readonly clock: Clock
  readonly acceptance: Acceptance
  readonly keyRing: KeyRing
  readonly requestRate: RequestRate

  constructor({ folder, after }: Place, db: WatchedDb, clock: Clock) {
    this.db = db
    this.clock = clock
    after(() => db.close())
    const blobs = new DiskBlobs(folder)
    this.acceptance = new Acceptance({
      db,
      clock,
      log: silentLog,
      blobs,
      lifetimeMs: 72 * 3_600_000,
      accepted: () => {},
      contents: new SendContents({
        db,
        clock,
        blobs,
        parsePool: new ParsePool({ threads: 1, timeoutMs: 10_000 }),
      }),
      domains: new ProvedDomains({ db, clock }),
      routePolicy: { mode: 'direct', isLocal: (domain) => domain === 'inbox.test', choosePool: () => null },
    })
    this.keyRing = new KeyRing({ db, clock })
    this.requestRate = new RequestRate({ db, clock })
  }
}

/** Two nodes that share one clock. */
async function setStage(scope: Scope, maxConnections: number) {
  const place = await makePlace(scope)
  const clock = new Clock()
  const start = () => new Node(place, new WatchedDb({ connection: place.connection, maxConnections }), clock)
  return { place, one: start(), two: start() }
}

const { place, one, two } = await setStage({ after }, 8)

const unlimited: Limits = {
  ...defaultLimits,
  messagesPerMinute: 1_000_000,
  messagesPerDay: 1_000_000,
  recipientsPerDay: 1_000_000,
  managedStarter: 100,
}

interface Sender {
  caller: Caller
  secret: string
  inbox: InboxRow
}

async function makeSender(limits: Partial<Limits> = {}, node = one): Promise<Sender> {
  const organization = await createOrganization(node, {
    name: 'Test',
    status: 'active',
    limits: { ...unlimited, ...limits },
  })
  const { secret } = await createKey(node, {
    ...unrestricted,
    organizationId: organization.id,
    name: 'test',
  })
  const [caller] = await findCallers(node.db, [hashSecret(secret)])
  const inbox = await openInbox({ ...node, managedDomain: 'inbox.test' }, caller!, {}, null)
  return { caller: caller!, secret, inbox }
}

const message: MessageBody = { to: [{ email: 'someone@far.test' }], subject: 'Test', text: 'Hello.' }

function send({ acceptance }: Node, { caller, inbox }: Sender, key: string = randomUUID(), body = message) {
  const idempotency = { key, requestHash: requestHash({ inboxId: inbox.id }, body) }
  return acceptance.acceptMessage(caller, inbox.id, body, idempotency)
}

async function codesOf(sends: Promise<unknown>[]): Promise<string[]> {
  const settled = await Promise.allSettled(sends)
  return settled.map((end) => {
    if (end.status === 'fulfilled') return 'accepted'
    return end.reason instanceof ServiceError ? end.reason.code : String(end.reason)
  })
}

/** The ids of its messages or submissions, in order. */
async function idsOf(table: 'message' | 'submission', { caller }: Sender): Promise<string[]> {
  const rows = await one.db.query<{ id: string }>(`select id from ${table} where organization_id = $1`, [
    caller.organizationId,
  ])
  return rows.map(({ id }) => id).sort()
}

const tally = (codes: string[]) =>
  Object.fromEntries(
    Object.entries(Object.groupBy(codes, (code) => code)).map(([code, all]) => [code, all!.length]),
  )

async function countDeadlocks(): Promise<number> {
  const [row] = await one.db.query<{ deadlocks: number }>(
    `select deadlocks, pg_stat_clear_snapshot() from pg_stat_database where datname = current_database()`,
  )
  return row!.deadlocks
}

test('check 50, 95: limits are exact under 50 parallel sends over two nodes', async () => {
  const nodes = [one, two]
  const spread = (sender: Sender, body = message) =>
    codesOf(Array.from({ length: 50 }, (_, i) => send(nodes[i % 2]!, sender, undefined, body)))
  const to = [1, 2, 3].map((n) => ({ email: `r${n}@far.test` }))

  const perMinute = await makeSender({ messagesPerMinute: 7 })
  assert.deepEqual(tally(await spread(perMinute)), { accepted: 7, send_limit_exceeded: 43 })
  one.clock.advance(61_000)
  assert.deepEqual(tally(await spread(perMinute)), { accepted: 7, send_limit_exceeded: 43 })

  const perDay = await makeSender({ messagesPerDay: 11 })
  assert.deepEqual(tally(await spread(perDay)), { accepted: 11, send_limit_exceeded: 39 })
  one.clock.advance(86_400_000)
  assert.deepEqual(tally(await spread(perDay)), { accepted: 11, send_limit_exceeded: 39 })

  const recipients = await makeSender({ recipientsPerDay: 20 })
  assert.deepEqual(tally(await spread(recipients, { ...message, to })), {
    accepted: 6,
    send_limit_exceeded: 44,
  })
})

test('check 89: a clock that was a day ahead leaves no limit that lasts a day', async () => {
  const sender = await makeSender({ messagesPerMinute: 1, requestsPerMinute: 1 })
  one.clock.advance(86_400_000)
  await send(one, sender)
  assert.equal((await one.requestRate.admit(sender.caller)).isAllowed, true)
  assert.deepEqual(await codesOf([send(one, sender)]), ['send_limit_exceeded'])
  one.clock.advance(-86_400_000)
  assert.deepEqual(await codesOf([send(one, sender)]), ['accepted'])
  assert.equal((await one.requestRate.admit(sender.caller)).isAllowed, true)
})

test('check 72, 95: 100 parallel sends with one key over two nodes are one submission', async () => {
  const sender = await makeSender()
  const nodes = [one, two]
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, i) => send(nodes[i % 2]!, sender, 'one-key-1')),
  )
  assert.equal(new Set(answers.map(({ message, submission }) => message.id + submission.id)).size, 1)
  assert.equal(answers.filter(({ replayed }) => !replayed).length, 1)
  assert.equal((await idsOf('message', sender)).length, 1)
  const other = await codesOf([send(two, sender, 'one-key-1', { ...message, text: 'Other.' })])
  assert.deepEqual(other, ['idempotency_key_reused'])
})

test('check 72: replays at the same time share the commits that confirm the first answer', async (t) => {
  const sender = await makeSender()
  await send(one, sender, 'confirmed')
  const confirmed = t.mock.method(one.db, 'confirm')
  const replays = await Promise.all(Array.from({ length: 60 }, () => send(one, sender, 'confirmed')))
  assert.ok(replays.every(({ replayed }) => replayed))
  const count = confirmed.mock.callCount()
  assert.ok(count >= 1 && count <= 10, `${count} commits for 60 replays`)
})

test('check 72: sends that waited for a refused send with the same key continue one at a time', async () => {
  const sender = await makeSender()
  one.db.faults = []
  const crowd = { ...message, to: Array.from({ length: 60 }, (_, i) => ({ email: `u${i}@far.test` })) }
  const key = randomUUID()
  const codes = await codesOf([crowd, ...Array(8).fill(message)].map((body) => send(one, sender, key, body)))
  assert.deepEqual(tally(codes), { too_many_recipients: 1, accepted: 8 })
  // If one batch held both, they would conflict and the whole batch would run again.
  assert.deepEqual(one.db.faults, [])
})

test('check 72, 85a: an acceptance whose answer was lost runs again with the same ids, once', async () => {
  const sender = await makeSender({ messagesPerDay: 2 })
  one.db.lose(1)
  const first = await send(one, sender, 'lost-once')
  assert.equal(first.replayed, false)
  one.db.lose(2)
  assert.match((await codesOf([send(one, sender, 'lost-twice')]))[0]!, /DbFault/)
  const again = await send(two, sender, 'lost-twice')
  assert.equal(again.replayed, true)
  assert.deepEqual(await idsOf('message', sender), [first.message.id, again.message.id].sort())
})

test('check 72, 85a: a committed send stays accepted, even if its key ends before the lost answer is requested', async () => {
  const sender = await makeSender()
  one.db.lose(1, async () => {
    await two.db.query('update api_key set revoked_at = now() where id = $1', [sender.caller.id])
  })
  const { submission } = await send(one, sender)
  assert.deepEqual(await idsOf('submission', sender), [submission.id])
  assert.deepEqual(await codesOf([send(one, sender)]), ['unauthorized'])
})

test('usage grows by exactly the sends that a batch wrote, for each organization', async () => {
  const senders = await Promise.all([{}, { messagesPerMinute: 4 }, {}].map((limits) => makeSender(limits)))
  const organizations = senders.map(({ caller }) => caller.organizationId)
  for (const id of organizations)
    await one.db.query(
      `insert into suppression (organization_id, address_key, id, email, reason, created_at)
      values ($1, 'gone@far.test', gen_random_uuid(), 'gone@far.test', 'manual', now())`,
      [id],
    )
  const bodies = Array.from({ length: 60 }, (_, i) => ({
    ...message,
    to: Array.from({ length: (i % 7) + 1 }, (_, k) => ({
      email: k === 3 ? 'gone@far.test' : `r${k}@d${(i + k) % 5}.test`,
    })),
    subject: i % 25 === 3 ? 'a\0b' : 'Test',
  }))
  const codes = tally(await codesOf(bodies.map((body, i) => send(one, senders[i % 3]!, undefined, body))))
  assert.ok(codes.accepted! > 30 && codes.send_limit_exceeded! > 10, JSON.stringify(codes))
  const counted = await one.db.query(
    `select organization_id, c.fact, c.destination, sum(c.amount)::integer as amount
    from metric_delta cross join unnest(counts) c where organization_id = any($1) group by 1, 2, 3 order by 1, 2, 3`,
    [organizations],
  )
  const written = await one.db.query(
    `select * from (
      select organization_id, 'accepted' as fact, null as destination, count(*)::integer as amount from submission group by 1
      union all select organization_id, 'recipients', domain, count(*)::integer from delivery group by 1, 3
      union all select organization_id, 'suppressed', domain, count(*)::integer from delivery where status = 'suppressed'
      group by 1, 3
    ) n where organization_id = any($1) order by 1, 2, 3`,
    [organizations],
  )
  assert.deepEqual(counted, written)
  const used = await one.db.query(
    'select organization_id, day_messages, day_recipients from usage where organization_id = any($1) order by 1',
    [organizations],
  )
  const sent = await one.db.query(
    `select s.organization_id, count(distinct s.id) as day_messages, count(d) as day_recipients
    from submission s left join delivery d on d.submission_id = s.id and d.status <> 'suppressed'
    where s.organization_id = any($1) group by 1 order by 1`,
    [organizations],
  )
  assert.deepEqual(used, sent)
})

/** Everything that can block a send, each created for the organization $1. */
const obstacles = [
  ['unauthorized', 'update api_key set revoked_at = now() where organization_id = $1'],
  ['organization_inactive', `update organization set status = 'suspended' where id = $1`],
  [
    'send_limit_exceeded',
    `update organization set limits = limits || '{"messagesPerDay": 1}'::jsonb where id = $1`,
  ],
  ['not_found', `update inbox set status = 'deleted' where organization_id = $1`],
  [
    'all_recipients_suppressed',
    `insert into suppression (organization_id, address_key, id, email, reason, created_at)
    select organization_id, address_key, gen_random_uuid(), email, 'manual', now()
    from delivery where organization_id = $1`,
  ],
] as const

test('an obstacle to one send of a batch is found, and the other sends pass', async () => {
  const good = await makeSender()
  const stranger = { ...good.caller, id: randomUUID(), organizationId: randomUUID() } as Caller
  const organizations: string[] = [good.caller.organizationId, stranger.organizationId]
  await send(one, good)
  for (const [code, statement] of obstacles) {
    const bad = await makeSender()
    organizations.push(bad.caller.organizationId)
    await send(one, bad)
    await one.db.query(statement, [bad.caller.organizationId])
    const codes = await codesOf([good, bad, good].map((sender) => send(one, sender)))
    assert.deepEqual(codes, ['accepted', code, 'accepted'])
  }
  const unknown = { ...good.caller, id: stranger.id } as Caller
  const codes = await codesOf(
    [good.caller, unknown, stranger].map((caller) => send(one, { ...good, caller })),
  )
  assert.deepEqual(codes, ['accepted', 'unauthorized', 'not_found'])
  const used = await one.db.query(
    'select organization_id, day_messages as count from usage where organization_id = any($1) order by 1',
    [organizations],
  )
  const sent = await one.db.query(
    'select organization_id, count(*) as count from submission where organization_id = any($1) group by 1 order by 1',
    [organizations],
  )
  assert.deepEqual(used, sent)
})

test('check 69: an obstacle that arises while a send waits is found', async () => {
  for (const [code, statement] of obstacles) {
    const sender = await makeSender()
    await send(one, sender)
    const organization = [sender.caller.organizationId]
    const waiting = await two.db.transaction(async (tx) => {
      await tx.query('select from usage where organization_id = $1 for update', organization)
      const codes = codesOf([send(one, sender)])
      await untilLocked(two.db, { saying: 'decide_sends(' })
      await two.db.query(statement, organization)
      return { codes }
    })
    assert.deepEqual(await waiting.codes, [code])
  }
})

// A database of its own: its tables start small, and only this test's reads are counted.
test('acceptance reads only its own rows, even with plans made over small tables', async (t) => {
  const { one } = await setStage(t, 1)
  await turnAutovacuumOff(one.db)
  const sender = await makeSender({}, one)
  const { organizationId } = sender.caller
  const body = { ...message, to: [...message.to, { email: 'gone@far.test' }] }
  const batch = () => codesOf(Array.from({ length: 20 }, () => send(one, sender, undefined, body)))
  const rowsRead = async () => {
    await one.db.query('select pg_stat_force_next_flush()')
    return await one.db.query<{ table: string; rows: number }>(
      `select relname as table, idx_tup_fetch + seq_tup_read as rows from pg_stat_user_tables
      where relname in ('inbox', 'api_key', 'thread', 'message', 'submission', 'delivery', 'suppression') order by 1`,
    )
  }
  await one.db.query(
    `insert into suppression (organization_id, address_key, id, email, reason, created_at)
      values ($1, 'gone@far.test', gen_random_uuid(), 'gone@far.test', 'manual', now())`,
    [organizationId],
  )
  for (let count = 0; count < 3; count++) await batch()
  for (const statement of [
    `insert into inbox (id, organization_id, local_part, domain, display_name, status, created_at, updated_at)
    select 'inb_z' || n, $1, 'l' || n, 'inbox.test', '', 'active', now(), now() from generate_series(1, 5000) n`,
    `insert into api_key (id, organization_id, name, kind, hash, scopes, send_mode, created_at)
    select gen_random_uuid(), $1, '', 'agent', n::text::bytea, '{}', 'reply_only', now() from generate_series(1, 5000) n`,
    `insert into suppression (organization_id, address_key, id, email, reason, created_at)
      select $1, 'a' || n, gen_random_uuid(), 'a', 'manual', now() from generate_series(1, 5000) n`,
    `insert into delivery (submission_id, position, organization_id, email, address_key, domain, route, status, due_at,
      expires_at, updated_at)
    select gen_random_uuid(), 0, $1, 'a', 'a', 'd', 'd', s, now(), now(), now()
    from generate_series(1, 2500), unnest(array['pending', 'delivered']) s`,
  ])
    await one.db.query(statement, [organizationId])
  // All caches have expired, so everything is looked up again.
  one.clock.advance(2_000)
  const before = await rowsRead()
  assert.deepEqual(tally(await batch()), { accepted: 20 })
  for (const [n, { table, rows }] of (await rowsRead()).entries())
    assert.ok(rows - before[n]!.rows < 500, `${rows - before[n]!.rows} rows of ${table}`)
})

test('a stop waits for every acceptance under way, from its first step', async () => {
  const sender = await makeSender()
  const ended: string[] = []
  const large = { ...message, text: 'x'.repeat(300_000) }
  const { sending, draining } = await two.db.transaction(async (tx) => {
    await tx.query('select from usage where organization_id = $1 for update', [sender.caller.organizationId])
    const sending = [message, large].map((body) =>
      send(one, sender, undefined, body).then(() => ended.push('accepted')),
    )
    const draining = one.acceptance.drained().then(() => ended.push('drained'))
    await untilLocked(two.db, { saying: 'decide_sends(' })
    return { sending, draining }
  })
  await Promise.all([...sending, draining])
  assert.deepEqual(ended, ['accepted', 'accepted', 'drained'])
})

test('a bad row is refused alone, and its neighbours in the batch are accepted', async () => {
  const sender = await makeSender()
  // The API rejects NUL. PostgreSQL rejects it too, so this row fails its batch.
  const bad = { ...message, subject: 'a\0b' }
  const codes = await codesOf(
    Array.from({ length: 60 }, (_, i) => send(one, sender, undefined, i % 25 === 3 ? bad : message)),
  )
  assert.equal(codes.filter((code) => code === 'accepted').length, 57)
  assert.equal(codes.filter((code) => /DbFault/.test(code)).length, 3)
})

test('check 69: a key that is revoked after it was looked up is refused by the acceptance itself', async () => {
  const sender = await makeSender()
  const caller = await one.keyRing.authenticate(sender.secret, '127.0.0.1')
  await two.db.query('update api_key set revoked_at = now() where id = $1', [sender.caller.id])
  assert.deepEqual(await codesOf([send(one, { ...sender, caller: caller! })]), ['unauthorized'])
  one.clock.advance(1_001)
  assert.equal(await one.keyRing.authenticate(sender.secret, '127.0.0.1'), null)
})

test('no deadlock occurs: 30 organizations in opposite orders, with deletions, on two nodes', async () => {
  const senders = await Promise.all(Array.from({ length: 30 }, () => makeSender()))
  const blobs = new DiskBlobs(place.folder)
  const before = await countDeadlocks()
  const work = Array.from({ length: 12 }, async (_, round) => {
    const order = round % 2 ? senders : senders.toReversed()
    const node = round % 4 < 2 ? one : two
    const bodies = order.map((_, i) => ({
      ...message,
      to: [{ email: `x@d${round % 3 ? i : 30 - i}-${round >> 2}.test` }],
    }))
    const sent = await Promise.all(order.map((sender, i) => send(node, sender, undefined, bodies[i])))
    await Promise.all(
      sent
        .slice(0, 10)
        .map(({ message }, i) => deleteMessage({ ...node, blobs }, order[i]!.caller, message.id)),
    )
  })
  await Promise.all(work)
  await Promise.all(senders.slice(0, 5).map(({ caller, inbox }) => deleteInbox(one, caller, inbox.id)))
  assert.equal(await countDeadlocks(), before)
  const [row] = await one.db.query<{ used: number }>(
    'select sum(day_messages) as used from usage where organization_id = any($1)',
    [senders.map(({ caller }) => caller.organizationId)],
  )
  assert.equal(row!.used, 360)
})

test('check 78: a key’s request rate is one limit over all nodes', async () => {
  const { caller } = await makeSender({ requestsPerMinute: 200 })
  // The window begins with the minute, so the test stays clear of its end.
  one.clock.advance(60_000 - (one.clock.nowMs() % 60_000))
  const nodes = [one, two]
  const admit = (count: number) =>
    Promise.all(Array.from({ length: count }, (_, i) => nodes[i % 2]!.requestRate.admit(caller)))
  const allowed = (await admit(1_000)).filter((admission) => admission.isAllowed).length
  assert.ok(allowed <= 200 && allowed >= 190, `${allowed} of 200`)
  one.clock.advance(60_000)
  assert.ok((await admit(10)).every((admission) => admission.isAllowed))
})
