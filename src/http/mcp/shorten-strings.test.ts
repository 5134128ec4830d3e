// Strings of JSON are shortened wherever the chunks end, and everything else stays.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { shortenStrings } from './shorten-strings.ts'

async function shorten(json: string, maxChars: number, chunkChars: number, maxTotal = 1e6): Promise<string> {
  async function* chunks() {
    for (let at = 0; at < json.length; at += chunkChars) yield json.slice(at, at + chunkChars)
  }
  let kept = ''
  for await (const part of shortenStrings(chunks(), maxChars, maxTotal)) kept += part
  return kept
}

/** Shortens each string of a value, names of members included. A pair of surrogates is kept whole. */
function shortened(value: unknown, maxChars: number): unknown {
  if (typeof value === 'string') {
    const splits = /^[\udc00-\udfff]/.test(value.slice(maxChars, maxChars + 1))
    return value.slice(0, splits && maxChars > 0 ? maxChars + 1 : maxChars)
  }
  if (Array.isArray(value)) return value.map((one) => shortened(one, maxChars))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, shortened(one, maxChars)]))
}

const text = fc.string({ unit: 'binary', maxLength: 40 })
const values = fc.oneof(
  fc.jsonValue({ stringUnit: 'binary' }),
  fc.array(fc.record({ id: fc.integer(), text, list: fc.array(text) })),
)

test('each string keeps its first characters', async () => {
  const property = fc.asyncProperty(
    fc.array(fc.oneof(text, fc.integer(), fc.record({ a: text, b: fc.array(text) }))),
    fc.integer({ min: 1, max: 20 }),
    fc.integer({ min: 1, max: 9 }),
    async (value, maxChars, chunkChars) => {
      const kept = await shorten(JSON.stringify(value), maxChars, chunkChars)
      assert.deepEqual(JSON.parse(kept), JSON.parse(JSON.stringify(shortened(value, maxChars))))
    },
  )
  await fc.assert(property, { numRuns: 500 })
})

test('any JSON stays JSON, and stays the same if its strings are short', async () => {
  const property = fc.asyncProperty(values, fc.integer({ min: 1, max: 9 }), async (value, chunkChars) => {
    const json = JSON.stringify(value)
    assert.equal(await shorten(json, 1_000, chunkChars), json)
    JSON.parse(await shorten(json, 0, chunkChars))
  })
  await fc.assert(property, { numRuns: 500 })
})

test('an escape is not separated', async () => {
  const json = '["ab\\u00e9\\ud83d\\ude00\\"c\\\\"]'
  assert.equal(await shorten(json, 3, 1), '["ab\\u00e9"]')
  assert.equal(await shorten(json, 2, 2), '["ab"]')
})

test('JSON that stays too large is refused', async () => {
  await assert.rejects(shorten(JSON.stringify(Array(1_000).fill('x')), 10, 100, 2_000), {
    code: 'page_too_large',
  })
})
