// Turns by organization.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { BodyTurns } from './turns.ts'

test('hostile 8: large bodies are read one at a time, organizations in turn, whoever brings more', async () => {
  const turns = new BodyTurns()
  const done: string[] = []
  let [running, mostRunning] = [0, 0]
  const bring = (organization: string, name: string, also?: () => void) =>
    turns.take(organization, async () => {
      mostRunning = Math.max(mostRunning, ++running)
      await pause(1)
      done.push(name)
      also?.()
      running--
    })
  for (const name of ['a1', 'a2', 'a3', 'a4']) bring('a', name)
  for (const name of ['b1', 'b2']) bring('b', name)
  const ended = Promise.withResolvers<void>()
  // Those that come meanwhile are behind those that had no turn yet; one of b is not behind all of a.
  bring('c', 'c1', () => {
    bring('d', 'd1')
    bring('b', 'b3', ended.resolve)
  })
  await ended.promise
  assert.deepEqual(done, ['a1', 'b1', 'c1', 'a2', 'b2', 'd1', 'a3', 'b3'])
  const last = Promise.withResolvers<void>()
  bring('e', 'e1', last.resolve)
  await last.promise
  assert.deepEqual(done.slice(-2), ['a4', 'e1'])
  assert.equal(mostRunning, 1)
})
