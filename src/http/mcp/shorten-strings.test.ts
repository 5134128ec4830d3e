// Strings of JSON are shortened wherever the chunks end, and everything else stays.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Kept, shortenStrings } from './shorten-strings.ts'

async function shorten(json: string, kept: Kept, chunkChars: number, maxTotal = 1e6): Promise<string> {
  async function* chunks() {
    for (let at = 0; at < json.length; at += chunkChars) yield json.slice(at, at + chunkChars)
  }
  let [shortened, held] = ['', 0]
  const hold = (chars: number) => (held += chars)
  for await (const part of shortenStrings(chunks(), kept, maxTotal, hold)) shortened += part
  assert.equal(held, shortened.length)
  return shortened
}

const first = (head: number): Kept => ({ head, from: 0, length: 0 })

/** Shortens each string of a value, names of members included. */
function shortened(value: unknown, kept: Kept): unknown {
  if (typeof value === 'string') {
    const { head, from, length } = kept
    return value.slice(0, head) + value.slice(Math.max(head, from), Math.max(head, from + length))
  }
  if (Array.isArray(value)) return value.map((one) => shortened(one, kept))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, shortened(one, kept)]))
}

const text = fc.string({ unit: 'binary', maxLength: 40 })
const values = fc.oneof(
  fc.jsonValue({ stringUnit: 'binary' }),
  fc.array(fc.record({ id: fc.integer(), text, list: fc.array(text) })),
)

test('each string keeps its first characters, and those of the portion', async () => {
  const property = fc.asyncProperty(
    fc.array(fc.oneof(text, fc.integer(), fc.record({ a: text, b: fc.array(text) }))),
    fc.record({ head: fc.integer({ min: 1, max: 20 }), from: fc.nat(40), length: fc.nat(9) }),
    fc.integer({ min: 1, max: 9 }),
    async (value, kept, chunkChars) => {
      const json = await shorten(JSON.stringify(value), kept, chunkChars)
      assert.deepEqual(JSON.parse(json), shortened(value, kept))
    },
  )
  await fc.assert(property, { numRuns: 500 })
})

test('any JSON stays JSON, and stays the same if its strings are short', async () => {
  const property = fc.asyncProperty(values, fc.integer({ min: 1, max: 9 }), async (value, chunkChars) => {
    const json = JSON.stringify(value)
    assert.equal(await shorten(json, first(1_000), chunkChars), json)
    JSON.parse(await shorten(json, first(0), chunkChars))
  })
  await fc.assert(property, { numRuns: 500 })
})

test('an escape is not separated', async () => {
  const json = '["ab\\u00e9\\ud83d\\ude00\\"c\\\\"]'
  assert.equal(await shorten(json, first(3), 1), '["ab\\u00e9"]')
  assert.equal(await shorten(json, first(2), 2), '["ab"]')
})

test('JSON that stays too large is refused', async () => {
  await assert.rejects(shorten(JSON.stringify(Array(1_000).fill('x')), first(10), 100, 2_000), {
    code: 'page_too_large',
  })
})
