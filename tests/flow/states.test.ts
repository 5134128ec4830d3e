// The states of a submission in SQL are those of flow/states.ts, whatever its recipients come to, in whatever order. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { recipientMoves, submissionStatusOf } from '../../src/flow/states.ts'
import type { DeliveryStatus } from '../../src/store/status.ts'
import { makePlace, send, startNode } from '../support/node.ts'

const statuses = Object.keys(recipientMoves) as DeliveryStatus[]

test('settle_submissions agrees with submissionStatusOf', async (t) => {
  const node = await startNode(await makePlace(t), { roles: ['api'] })
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  const { db, clock } = node.foundation
  const sizes = [1, 2, 3, 4, 5]
  const bySize = await Promise.all(
    sizes.map(async (size) => {
      const to = Array.from({ length: size }, (_, i) => `r${i}@far.test`)
      return (await send(api, inbox, to)).submission.id
    }),
  )
  const states = fc.array(fc.constantFrom(...statuses), { minLength: 1, maxLength: sizes.length })
  await fc.assert(
    fc.asyncProperty(states, async (recipients) => {
      const id = bySize[recipients.length - 1]!
      await db.query(
        `update delivery d set status = s.status, failure_code = case when s.status in ('bounced', 'failed', 'suppressed')
          then s.status || '-' || d.position end
        from unnest($2::text[]) with ordinality s(status, place) where d.submission_id = $1 and d.position = s.place - 1`,
        [id, recipients],
      )
      await db.query(
        'select settle_submissions(array(select f from jsonb_populate_recordset(null::recipient_fact, $1) f), $2)',
        [JSON.stringify([{ submission: id, type: 'attempted', at: clock.now(), id }]), clock.now()],
      )
      const [row] = await db.query<{ status: string; code: string | null }>(
        'select status, failure_code as code from submission where id = $1',
        [id],
      )
      assert.equal(row!.status, submissionStatusOf(recipients))
      const first = recipients.findIndex((status) => ['bounced', 'failed', 'suppressed'].includes(status))
      const code = row!.status === 'pending' || first < 0 ? null : `${recipients[first]}-${first}`
      assert.equal(row!.code, code)
    }),
    { numRuns: 150 },
  )
  const gaps = await db.query(
    'select from submission s where event_seq <> (select count(*) from event e where e.submission_id = s.id)',
  )
  assert.equal(gaps.length, 0)
})
