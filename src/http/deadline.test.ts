// How long a request waits: what comes in time passes, what does not is unavailable, each by its own time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ServiceError } from '../base/errors.ts'
import { Deadline } from './deadline.ts'

const never = () => new Promise<never>(() => {})
const isUnavailable = (error: unknown) => error instanceof ServiceError && error.code === 'unavailable'
/** The deadline's own timer keeps no process alive. */
const aliveWhile = async (work: Promise<unknown>) => {
  const timer = setInterval(() => {}, 1_000)
  await work.finally(() => clearInterval(timer))
}

test('what settles in time passes as it is', async () => {
  const deadline = new Deadline(60_000)
  assert.equal(await deadline.within(Promise.resolve(7)), 7)
  await assert.rejects(deadline.within(Promise.reject(new Error('its own'))), /its own/)
})

test('what does not come is unavailable, the later ones too', async () => {
  const deadline = new Deadline(5)
  const ended: string[] = []
  const wait = (name: string) =>
    assert.rejects(deadline.within(never()), isUnavailable).then(() => ended.push(name))
  const first = wait('first')
  await deadline.within(Promise.resolve())
  const second = wait('second')
  await aliveWhile(first)
  const third = wait('third')
  await aliveWhile(Promise.all([second, third]))
  assert.deepEqual(ended, ['first', 'second', 'third'])
})
