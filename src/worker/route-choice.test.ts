// Slots for queues are given out in rounds, and no organization gets all of them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chooseRoutes, type HeldQueue } from './route-choice.ts'

const candidatesOf = (organizationId: string, count: number, { failures = 0 } = {}) =>
  Array.from({ length: count }, (_, i) => ({
    key: `${organizationId}${i}-${failures}`,
    organizationId,
    failures,
  }))

const holdingsOf = (organizationId: string | null, count: number, isOpening: boolean): HeldQueue[] =>
  Array.from({ length: count }, () => ({ organizationId, isOpening }))

function chosenBy(chosen: { organizationId: string }[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { organizationId: id } of chosen) counts[id] = (counts[id] ?? 0) + 1
  return counts
}

test('organizations alternate, and each begins with queues that did not fail', () => {
  const candidates = [
    ...candidatesOf('a', 5, { failures: 3 }),
    ...candidatesOf('a', 2),
    ...candidatesOf('b', 1, { failures: 9 }),
    ...candidatesOf('c', 2),
  ]
  const chosen = chooseRoutes(candidates, [], 5).map(({ key }) => key)
  assert.deepEqual(chosen, ['a0-0', 'c0-0', 'b0-9', 'a1-0', 'c1-0'])
})

test('hostile 1: at most 200 queues open, 50 of one organization, and a new organization finds a slot', () => {
  const all = ['a', 'b', 'c', 'd', 'e'].flatMap((id) => candidatesOf(id, 600))
  assert.deepEqual(chosenBy(chooseRoutes(candidatesOf('a', 600), [], 600)), { a: 50 })
  const among = chosenBy(chooseRoutes(all, holdingsOf('a', 50, true), 600))
  assert.equal(among['a'], undefined)
  assert.ok(Object.values(among).every((count) => count >= 20 && count <= 37))
  const full = holdingsOf('a', 199, true)
  assert.deepEqual(chosenBy(chooseRoutes(all, full, 600)), { b: 1 })
  assert.deepEqual(chooseRoutes(all, [...full, ...holdingsOf('b', 1, true)], 600), [])
})

test('at most 500 queues carry mail, 250 of one organization, and our own take no slot', () => {
  const held = holdingsOf('a', 250, false)
  assert.deepEqual(chooseRoutes(candidatesOf('a', 1), held, 50), [])
  assert.deepEqual(chosenBy(chooseRoutes(candidatesOf('a', 1), held.slice(1), 50)), { a: 1 })
  assert.deepEqual(chosenBy(chooseRoutes(candidatesOf('b', 1), held, 50)), { b: 1 })
  assert.deepEqual(chooseRoutes(candidatesOf('b', 1), [...held, ...holdingsOf('c', 250, false)], 50), [])
  assert.equal(chooseRoutes(candidatesOf('b', 1), holdingsOf(null, 600, false), 50).length, 1)
})

test('a shared queue counts for an organization that has a slot left', () => {
  const shared = ['a', 'b'].map((organizationId) => ({ key: 'both.test', organizationId, failures: 0 }))
  const chosen = chooseRoutes(shared, holdingsOf('a', 50, true), 50)
  assert.deepEqual(chosen, [shared[1]])
})
