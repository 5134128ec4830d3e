// A wait with a time limit: a result in time is returned, otherwise the replacement.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { within } from './within.ts'

const never = () => new Promise<string>(() => {})
/** Keeps the process alive, because the timer of `within` does not. */
const aliveWhile = async (work: Promise<unknown>) => {
  const timer = setInterval(() => {}, 1_000)
  await work.finally(() => clearInterval(timer))
}

test('within: a promise that settles in time passes unchanged', async () => {
  assert.equal(await within(60_000, Promise.resolve('it'), () => 'late'), 'it')
  const failed = Promise.reject(new Error('its own'))
  await assert.rejects(
    within(60_000, failed, () => 'late'),
    /its own/,
  )
})

test('within: a promise that misses its deadline is replaced, each by its own deadline', async () => {
  const ended: string[] = []
  const wait = (ms: number, name: string) => within(ms, never(), () => name).then((word) => ended.push(word))
  await aliveWhile(Promise.all([wait(20, 'second'), wait(5, 'first')]))
  assert.deepEqual(ended, ['first', 'second'])
  const refused = within(5, never(), () => Promise.reject(new Error('too late')))
  await aliveWhile(assert.rejects(refused, /too late/))
})
