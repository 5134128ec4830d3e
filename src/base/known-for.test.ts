// Cached look-ups: how long and how many are kept, and how often they are loaded.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { BoundedMap } from './bounded-map.ts'
import { Clock } from './clock.ts'
import { KnownFor, type KnownForOptions, recheckRefusal } from './known-for.ts'

/** A cache of words by first letter, and a record of which letters were loaded together. */
function dictionary(words: string[], options: Partial<KnownForOptions<string, string>> = {}) {
  const clock = new Clock()
  const asked: string[] = []
  const known = new KnownFor<string, string>({
    name: 'test',
    clock,
    ms: 1_000,
    max: 100,
    load: async (letters) => {
      asked.push(letters.join(''))
      return new Map(words.map((word) => [word[0]!, word]))
    },
    ...options,
  })
  return { clock, asked, known, words }
}

test('known for: concurrent questions share one look-up, which asks for each key once', async () => {
  const { known, asked } = dictionary(['apple', 'bread'])
  const found = await Promise.all(['a', 'b', 'a', 'c'].map((letter) => known.find(letter)))
  assert.deepEqual([found, asked], [['apple', 'bread', 'apple', null], ['abc']])
})

test('known for: a value is remembered for its time, counted from the question, then asked for again', async () => {
  const { known, asked, clock, words } = dictionary(['apple'])
  assert.equal(known.recall('a'), undefined)
  const found = known.find('a')
  clock.advance(600)
  assert.equal(await found, 'apple')
  words[0] = 'ant'
  assert.equal(known.recall('a'), 'apple')
  clock.advance(401)
  assert.equal(known.recall('a'), undefined)
  assert.equal(await known.find('a'), 'ant')
  assert.deepEqual(asked, ['a', 'a'])
})

test('known for: an absence is remembered as long as a value, or not at all', async () => {
  const [as, not] = [dictionary([]), dictionary([], { missingMs: 0 })]
  for (const { known, words } of [as, not]) {
    assert.equal(await known.find('a'), null)
    words.push('apple')
  }
  assert.deepEqual([await as.known.find('a'), await not.known.find('a')], [null, 'apple'])
  assert.deepEqual([as.asked, not.asked], [['a'], ['a', 'a']])
})

test('known for: a remembered absence is checked again before a refusal, by one question for all callers', async () => {
  const { known, asked, clock, words } = dictionary([])
  const find = () =>
    recheckRefusal(
      clock,
      (sinceMs) => known.find('a', sinceMs),
      (word) => word === null,
    )
  assert.equal(await find(), null)
  assert.deepEqual(asked, ['a'])
  assert.deepEqual(await Promise.all([find(), find(), find()]), [null, null, null])
  assert.deepEqual(asked, ['a', 'a'])
  words.push('apple')
  assert.equal(await find(), 'apple')
  assert.equal(await find(), 'apple')
  assert.deepEqual(asked, ['a', 'a', 'a'])
})

test('known for: a failed look-up rejects its callers, and the next caller looks up again', async (t: TestContext) => {
  const load = t.mock.fn(async () => new Map([['a', 'apple']]))
  load.mock.mockImplementationOnce(async () => {
    throw new Error('away')
  })
  const { known } = dictionary([], { load })
  await assert.rejects(known.find('a'), /away/)
  assert.equal(await known.find('a'), 'apple')
})

test('known for: past the bound only the oldest entry is dropped', () => {
  const map = new BoundedMap<string, number>(2)
  map.set('a', 1).set('b', 2).set('a', 3).set('c', 4)
  assert.deepEqual(
    [...map],
    [
      ['a', 3],
      ['c', 4],
    ],
  )
})
