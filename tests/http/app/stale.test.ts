// The service deletes expired data about people, and nothing else.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { purgeStale } from '../../../src/flow/upkeep/purge-stale.ts'
import { setStage } from '../stage.ts'
import { enterAs, password, Visitor } from './visitor.ts'

const stage = await setStage({ after }, { trustedProxies: ['127.0.0.0/8'] })
const dayMs = 86_400_000

async function count(): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const table of ['person', 'person_token', 'invitation', 'sign_in_failure', 'session']) {
    const [row] = await stage.db.query<{ count: number }>(`select count(*) as count from ${table}`)
    counts[table] = row!.count
  }
  return counts
}

test('expired links, invitations, attempts, sessions and unproved addresses are deleted', async () => {
  const owner = await enterAs(stage, await stage.createCaller())
  const { person } = await owner.want<{ person: { email: string } }>('/session')
  await new Visitor(stage).signIn(person.email)
  const body = { email: 'invited@far.test', role: 'member' }
  await owner.want('/invitations', { method: 'POST', status: 201, body })
  const unproved = { email: 'unproved@far.test', password, name: 'U' }
  await new Visitor(stage).want('/sign-up', { method: 'POST', status: 202, body: unproved })
  const full = await count()
  assert.equal(full['person'], 2)
  // Signing in has ended the session that confirming the address started.
  assert.equal(full['session'], 3)
  assert.ok(full['sign_in_failure']! > 2)
  const purge = async () => {
    while (await purgeStale(stage, 1));
    return await count()
  }
  assert.deepEqual(await purge(), full)
  stage.clock.advance(2 * dayMs)
  // The wait after too many mails to an address lasts at most one day.
  const used = { ...full, person_token: 0, sign_in_failure: 0, session: 2 }
  assert.deepEqual(await purge(), used)
  stage.clock.advance(6 * dayMs)
  assert.deepEqual(await purge(), { ...used, invitation: 0 })
  await owner.call('/session')
  stage.clock.advance(24 * dayMs)
  const later = await purge()
  // The owner has two sessions. The one unused since then is gone.
  assert.deepEqual([later['person'], later['session']], [1, 1])
  await owner.want('/session', { method: 'DELETE', status: 204 })
  assert.equal((await purge())['session'], 1)
  stage.clock.advance(dayMs + 1)
  assert.equal((await purge())['session'], 0)
})
