// The stored bytes of an organization are counted exactly, and no lock of the count delays others. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { InboxId, MessageId, OrganizationId, ThreadId } from '../../src/base/ids.ts'
import { purgeDeleted } from '../../src/flow/mailbox/delete-inbox.ts'
import { OldMessages } from '../../src/flow/mailbox/old-messages.ts'
import { foldStoredBytes } from '../../src/flow/upkeep/fold-stored.ts'
import { lockInbox } from '../../src/store/mailbox/inboxes.ts'
import { deleteMessageRows } from '../../src/store/mailbox/messages.ts'
import type { Inbox } from '../support/api.ts'
import { findLeftovers, findMiscounts } from '../support/leftovers.ts'
import { untilLocked } from '../support/lock-waits.ts'
import { makePlace, send, startNode, type TestCaller, type TestNode } from '../support/node.ts'
import { Sender } from '../support/transaction.ts'
import { until } from '../support/until.ts'

const taken = '250 2.0.0'
const shared = await startNode(await makePlace({ after }), { env: { POSTHORN_DELIVERY: 'capture' } })

/** Sends a mail of about that size. Returns the code of the last reply. */
async function mail(node: TestNode, to: Inbox[], bytes = 100): Promise<string> {
  const raw = `From: someone@far.test\r\nSubject: x\r\n\r\n${'x'.repeat(bytes)}\r\n`
  return (await new Sender(node.smtp).send({ to: to.map(({ address }) => address), raw })).at(-1)!
}

async function untilFiled({ foundation: { db } }: TestNode): Promise<void> {
  await until('all mail to be filed', async () => (await db.query('select from spool')).length === 0)
}

async function messageIds({ foundation: { db } }: TestNode, { id }: Inbox, limit: number): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    'select id from message where inbox_id = $1 order by id desc limit $2',
    [id, limit],
  )
  return rows.map((row) => row.id)
}

/** Deletes the message. Mail in transfer is not stopped. */
async function remove({ api }: TestCaller, id: string): Promise<void> {
  const { status } = await api.call(`/v1/messages/${id}`, { method: 'DELETE' })
  assert.ok(status === 204 || status === 409, `${status}`)
}

/** Receives, sends, deletes, purges, retains and folds for two organizations at once. */
async function storm(
  node: TestNode,
  callers: TestCaller[],
  inboxes: Inbox[][],
  round: number,
): Promise<void> {
  const { db, clock, blobs } = node.foundation
  const [[one, two], [other]] = inboxes as [[Inbox, Inbox], [Inbox]]
  const doomed = await callers[0]!.api.createInbox(`doomed-${round}`)
  const old = new OldMessages({ db, clock, blobs }, 0)
  const removals = callers.map(async (caller, i) => {
    for (const id of await messageIds(node, inboxes[i]![0]!, 2)) await remove(caller, id)
  })
  await Promise.all([
    ...[[one], [one, two], [other, one], [two, other], [one, doomed], [doomed, other]].map(async (to, i) =>
      assert.match(await mail(node, to, 200 + 37 * i + round), /^(250|550)/),
    ),
    mail(node, [two], 300_000),
    send(callers[0]!.api, one, [two.address]),
    send(callers[0]!.api, two, [other.address, 'someone@far.test']),
    ...removals,
    callers[0]!.api.call(`/v1/inboxes/${doomed.id}`, { method: 'DELETE' }),
    old.removeNext(3),
    purgeDeleted({ db, blobs }, 2),
    foldStoredBytes({ db }),
    foldStoredBytes({ db }),
    ...[0, 1, 2].map(async () => assert.deepEqual(await findMiscounts(db), [])),
  ])
}

test('stored bytes are counted exactly under concurrent receiving, sending, deleting, purging and folding', async () => {
  // The first test of the shared node, so it counts only its own data.
  const { db, blobs } = shared.foundation
  const callers = [await shared.createCaller(), await shared.createCaller()]
  const inboxes = await Promise.all(
    callers.map(async ({ api }, i) => [await api.createInbox(`one-${i}`), await api.createInbox(`two-${i}`)]),
  )
  for (let round = 0; round < 6; round++) await storm(shared, callers, inboxes, round)
  await untilFiled(shared)
  assert.deepEqual(await findMiscounts(db), [])
  const counted = () =>
    db.query<{ bytes: number }>('select stored_bytes as bytes from received_usage order by stored_bytes desc')
  assert.ok((await counted())[0]!.bytes > 300_000)

  for (const [i, { api }] of callers.entries())
    for (const { id } of inboxes[i]!) {
      await until('its mail to have left', async () => {
        return (await api.call(`/v1/inboxes/${id}`, { method: 'DELETE' })).status === 204
      })
    }
  await until('all to be purged', async () => {
    await purgeDeleted({ db, blobs }, 500)
    return (await db.query('select from inbox where not purged')).length === 0
  })
  await until('all to be folded', async () => {
    await foldStoredBytes({ db })
    return (await db.query('select from stored_delta')).length === 0
  })
  assert.ok((await counted()).every(({ bytes }) => bytes === 0))
  assert.deepEqual(await findLeftovers(db), [])
  const [{ deadlocks } = { deadlocks: -1 }] = await db.query<{ deadlocks: number }>(
    'select deadlocks from pg_stat_database where datname = current_database()',
  )
  assert.equal(deadlocks, 0)
})

test('deletions do not wait for receptions, nor receptions for deletions', async () => {
  const { db, clock } = shared.foundation
  const caller = await shared.createCaller()
  const inbox = await caller.api.createInbox('busy')
  for (let i = 0; i < 2; i++) assert.equal(await mail(shared, [inbox]), taken)
  await untilFiled(shared)
  const [one, two] = await caller.api.exported(inbox.id)
  const organizationId = caller.organizationId as OrganizationId
  // Holds the lock as receiving does.
  const [folded, late] = await db.transaction(async (tx) => {
    await tx.query('select from received_usage where organization_id = $1 for no key update', [
      organizationId,
    ])
    await caller.api.want(`/v1/messages/${one!.id}`, { method: 'DELETE', status: 204 })
    const folding = foldStoredBytes({ db })
    await untilLocked(db, { saying: 'fold_stored' })
    const mailing = mail(shared, [inbox])
    await untilLocked(db, { saying: 'receive_mails' })
    return [folding, mailing] as const
  })
  assert.equal(await late, taken)
  await folded
  await untilFiled(shared)
  assert.deepEqual(await findMiscounts(db), [])

  await db.transaction(async (tx) => {
    assert.ok(await lockInbox(tx, organizationId, inbox.id as InboxId))
    const message = { id: two!.id as MessageId, threadId: two!.threadId as ThreadId }
    await deleteMessageRows(tx, [message], clock.now())
    assert.equal(await mail(shared, [inbox]), taken)
  })
  await untilFiled(shared)
  assert.deepEqual(await findMiscounts(db), [])
  assert.equal((await caller.api.exported(inbox.id)).length, 2)
})
